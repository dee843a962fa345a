package intake

import (
	"bufio"
	"bytes"
	"encoding/binary"
)

// oggMaxPage is the largest page of an Ogg file in bytes.
const oggMaxPage = 27 + 255 + 255*255

// oggStream is a logical stream of an Ogg file.
type oggStream struct {
	headers int                         // packets before the first audio packet that are still to come
	seconds func(packet []byte) float64 // the length of an audio packet by its first bytes; nil: no audio
}

// oggLength adds up the packets of all streams (RFC 3533), in chained and multiplexed files too. The positions that
// pages state are not used.
func oggLength(r *bufio.Reader) audioLength {
	streams := map[uint32]*oggStream{}
	total := 0.0
	for {
		page, _ := r.Peek(oggMaxPage)
		if len(page) < 27 {
			return counted(total)
		}
		if !bytes.HasPrefix(page, []byte("OggS\x00")) {
			skip := bytes.Index(page[1:], []byte("OggS")) + 1
			if skip == 0 {
				skip = len(page) - 3
			}
			_, _ = r.Discard(skip)
			continue
		}
		packets, length := oggPackets(page)
		serial := binary.LittleEndian.Uint32(page[14:])
		for i, packet := range packets {
			stream := streams[serial]
			switch {
			case i == 0 && page[5]&2 != 0: // the page begins a stream
				if streams[serial] = oggCodec(packet); streams[serial] == nil {
					return audioLength{}
				}
			case stream == nil:
				return audioLength{}
			case stream.headers > 0:
				stream.headers--
			case stream.seconds != nil:
				total += stream.seconds(packet)
			}
		}
		_, _ = r.Discard(min(length, len(page)))
	}
}

// oggPackets returns the packets that begin in a page, each without what stands on the next pages, and the length of
// the page.
func oggPackets(page []byte) (packets [][]byte, length int) {
	at := min(27+int(page[26]), len(page))
	begins := page[5]&1 == 0 // the first segment does not continue a packet
	for _, n := range page[27:at] {
		if begins && n > 0 {
			packets = append(packets, page[min(at, len(page)):])
		}
		at += int(n)
		begins = n < 255
	}
	return packets, at
}

// oggCodec returns the stream that begins with a packet, nil if its packets cannot be counted.
func oggCodec(b []byte) *oggStream {
	switch {
	case bytes.HasPrefix(b, []byte("\x01vorbis")) && len(b) >= 29:
		// Two blocks overlap by half, so a packet has at most half of the larger block size.
		block, rate := float64(int(1)<<(b[28]>>4)), float64(binary.LittleEndian.Uint32(b[12:]))
		if rate == 0 {
			return nil
		}
		return &oggStream{headers: 2, seconds: func([]byte) float64 { return block / 2 / rate }}
	case bytes.HasPrefix(b, []byte("OpusHead")):
		return &oggStream{headers: 1, seconds: opusSeconds}
	case bytes.HasPrefix(b, []byte("\x7fFLAC")) && len(b) >= 13+4+34:
		headers, rate := int(binary.BigEndian.Uint16(b[7:])), flacRate(b[17:])
		if headers == 0 || rate == 0 { // 0 = unknown
			return nil
		}
		return &oggStream{headers: headers, seconds: func(packet []byte) float64 {
			_, samples, own := flacFrameAt(packet)
			if own > 0 {
				return samples / own
			}
			return samples / rate
		}}
	case bytes.HasPrefix(b, []byte("\x80theora")), bytes.HasPrefix(b, []byte("fishead\x00")):
		return &oggStream{}
	}
	return nil
}

// Lengths of an Opus frame in ms by the configuration modulo 4 (RFC 6716, section 3.1).
var (
	silkFrames = [4]float64{10, 20, 40, 60}
	celtFrames = [4]float64{2.5, 5, 10, 20}
)

// opusSeconds is the length of an Opus packet, by its table of contents.
func opusSeconds(packet []byte) float64 {
	config, frames := packet[0]>>3, 1.0
	switch packet[0] & 3 {
	case 1, 2:
		frames = 2
	case 3:
		frames = 0
		if len(packet) > 1 {
			frames = float64(packet[1] & 0x3f)
		}
	}
	switch {
	case config >= 16:
		return frames * celtFrames[config&3] / 1000
	case config >= 12: // hybrid: 10 or 20 ms
		return frames * silkFrames[config&1] / 1000
	}
	return frames * silkFrames[config&3] / 1000
}
