// Package testaudio makes audio for tests and benchmarks.
package testaudio

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

const (
	rate   = 8000 // bytes a second: 8 kHz, 8 bit, mono
	header = 44
)

// WAV returns noise of length d as PCM, 8 kHz, 8 bit, mono: a header of 44 bytes and 8,000 bytes a second.
// Equal seeds give equal bytes, different seeds different content.
func WAV(d time.Duration, seed string) []byte {
	data := int(d.Seconds() * rate)
	b := make([]byte, 0, header+data)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(header-8+data))
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // PCM
	b = binary.LittleEndian.AppendUint16(b, 1) // channel
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint16(b, 1) // byte a frame
	b = binary.LittleEndian.AppendUint16(b, 8) // bits a sample
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(data))
	b = b[:header+data]
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(b[header:]) // never fails
	return b
}
