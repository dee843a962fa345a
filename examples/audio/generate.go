//go:build ignore

// Command generate writes the sample clips of this folder. It composes the tunes itself, so that the
// repository holds no music of others. It needs ffmpeg with libmp3lame and libvorbis. Its output is
// committed; run it after changing a tune:
//
//	go run examples/audio/generate.go
//
// The simulator answers by the words match, unknown, broken, flaky and long in the names.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
)

const rate = 16000 // samples per second of every clip

func main() {
	dir := "examples/audio"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := generate(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, dir string) error {
	clips := []struct {
		name, title string
		pcm         []float64
		codec       []string
	}{
		{"match-paper-boats.mp3", "Paper Boats", paperBoats(12), []string{"-c:a", "libmp3lame", "-b:a", "32k"}},
		{"unknown-hum.flac", "Unknown Hum", hum(5), []string{"-c:a", "flac", "-compression_level", "12", "-sample_fmt", "s16"}},
		{"flaky-radio.ogg", "Flaky Radio", radio(8), []string{"-c:a", "libvorbis", "-q:a", "0"}},
		{"long-mix.mp3", "Long Mix", longMix(182), []string{"-c:a", "libmp3lame", "-b:a", "16k"}},
	}
	for _, c := range clips {
		if err := encode(ctx, filepath.Join(dir, c.name), c.title, c.pcm, c.codec); err != nil {
			return fmt.Errorf("make %s: %w", c.name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "broken-header.wav"), brokenWAV(), 0o644); err != nil {
		return fmt.Errorf("write broken-header.wav: %w", err)
	}
	return nil
}

// encode pipes mono 16-bit samples through ffmpeg. The output does not depend on the date or on the version
// of ffmpeg.
func encode(ctx context.Context, path, title string, pcm []float64, codec []string) error {
	args := []string{
		"-v", "error", "-y", "-f", "s16le", "-ar", fmt.Sprint(rate), "-ac", "1", "-i", "pipe:0",
		"-map_metadata", "-1", "-metadata", "title=" + title, "-fflags", "+bitexact", "-flags:a", "+bitexact",
	}
	cmd := exec.CommandContext(ctx, "ffmpeg", append(append(args, codec...), path)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(pcm16(pcm)), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run ffmpeg: %w", err)
	}
	return nil
}

func pcm16(samples []float64) []byte {
	out := make([]byte, 0, 2*len(samples))
	for _, s := range samples {
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(math.Round(26000*math.Tanh(s)))))
	}
	return out
}

// hz is the frequency of a MIDI note number.
func hz(note int) float64 { return 440 * math.Pow(2, float64(note-69)/12) }

// pluck adds a decaying note with a few harmonics, at seconds `at`.
func pluck(out []float64, at, length float64, note int, gain float64) {
	start, n := int(at*rate), int(length*rate)
	for i := 0; i < n && start+i < len(out); i++ {
		t := float64(i) / rate
		s := 0.0
		for h := 1.0; h <= 4; h++ {
			s += math.Sin(2*math.Pi*hz(note)*h*t) / (h * h) * math.Exp(-t*h*1.8)
		}
		out[start+i] += gain * s * min(1, t*200)
	}
}

// paperBoats is an arpeggio that walks through four chords.
func paperBoats(seconds int) []float64 {
	out := make([]float64, seconds*rate)
	chords := [][]int{{62, 66, 69, 74}, {59, 62, 66, 71}, {55, 59, 62, 67}, {57, 61, 64, 69}}
	order := []int{0, 2, 1, 3, 2, 1}
	for step := 0; float64(step)*0.25 < float64(seconds); step++ {
		chord := chords[step/6%len(chords)]
		pluck(out, float64(step)*0.25, 1.2, chord[order[step%6]], 0.5)
		if step%6 == 0 {
			pluck(out, float64(step)*0.25, 2, chord[0]-12, 0.5)
		}
	}
	return out
}

// hum is one wavering voice without a melody.
func hum(seconds int) []float64 {
	out := make([]float64, seconds*rate)
	phase := 0.0
	for i := range out {
		t := float64(i) / rate
		f := 180 + 35*math.Sin(1.1*t) + 22*math.Sin(2.7*t+1) + 3*math.Sin(2*math.Pi*5.5*t)
		phase += 2 * math.Pi * f / rate
		out[i] = 0.4 * (math.Sin(phase) + 0.3*math.Sin(2*phase)) * min(1, 2*t, 2*(float64(seconds)-t))
	}
	return out
}

// radio is a tune behind static that fades in and out.
func radio(seconds int) []float64 {
	out := make([]float64, seconds*rate)
	for step, note := range []int{76, 74, 72, 74, 76, 76, 79, 77, 76, 74, 72, 71, 72, 67, 72, 64} {
		pluck(out, float64(step)*0.5, 1, note, 0.5)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range out {
		fade := 0.5 + 0.5*math.Sin(float64(i)/rate*1.3)
		out[i] += 0.06 * fade * random.NormFloat64()
	}
	return out
}

// longMix joins eight different loops, as a DJ set does.
func longMix(seconds int) []float64 {
	out := make([]float64, seconds*rate)
	random := rand.New(rand.NewPCG(3, 4))
	scale := []int{0, 2, 3, 5, 7, 8, 10, 12}
	part := float64(seconds) / 8
	for p := range 8 {
		root, beat := 50+random.IntN(12), 0.3+0.05*float64(random.IntN(5))
		loop := make([]int, 8)
		for i := range loop {
			loop[i] = root + scale[random.IntN(len(scale))]
		}
		for i := 0; float64(i)*beat < part; i++ {
			at := float64(p)*part + float64(i)*beat
			pluck(out, at, 0.9, loop[i%8]+12, 0.4)
			if i%4 == 0 {
				pluck(out, at, 1.5, root-12, 0.6)
			}
		}
	}
	return out
}

// brokenWAV has the header of a WAV file, so that it is taken for audio, and a body that cannot be decoded:
// the fmt chunk names a codec that does not exist and the data chunk is shorter than it says.
func brokenWAV() []byte {
	random := rand.New(rand.NewPCG(5, 6))
	body := make([]byte, 6000)
	for i := range body {
		body[i] = byte(random.IntN(256))
	}
	var out bytes.Buffer
	out.WriteString("RIFF")
	_ = binary.Write(&out, binary.LittleEndian, uint32(36+90000))
	out.WriteString("WAVEfmt ")
	for _, field := range []any{uint32(16), uint16(0xBEEF), uint16(1), uint32(rate), uint32(2 * rate), uint16(2), uint16(16)} {
		_ = binary.Write(&out, binary.LittleEndian, field)
	}
	out.WriteString("data")
	_ = binary.Write(&out, binary.LittleEndian, uint32(90000))
	out.Write(body)
	return out.Bytes()
}
