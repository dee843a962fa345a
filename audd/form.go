package audd

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
)

// field is one form field, sent in order.
type field struct{ name, value string }

// form is a multipart/form-data body of known length. Only the fields are in
// memory.
type form struct {
	contentType string
	length      int64
	body        io.Reader
	source      io.Closer // nil without a file
}

// newForm builds the body: the token, the fields, then the audio, if any. It does
// not use mime/multipart, because the length must be known before the body is
// written.
func newForm(token string, fields []field, audio *Audio) (form, error) {
	var src io.ReadCloser
	var size int64
	if audio != nil {
		var err error
		if src, size, err = audio.open(); err != nil {
			return form{}, err
		}
	}
	boundary := rand.Text() // 130 random bits, so that no audio contains it
	head := bytes.NewBuffer(make([]byte, 0, 512))
	part := func(words ...string) {
		for _, word := range words {
			head.WriteString(word)
		}
	}
	begin := "--" + boundary + "\r\nContent-Disposition: form-data; name=\""
	add := func(f field) { part(begin, f.name, "\"\r\n\r\n", f.value, "\r\n") }
	add(field{"api_token", token})
	for _, f := range fields {
		add(f)
	}
	if audio != nil && audio.URL != "" {
		add(field{"url", audio.URL})
	}
	out := form{contentType: "multipart/form-data; boundary=" + boundary}
	end := "--" + boundary + "--\r\n"
	if src == nil {
		head.WriteString(end)
		out.length, out.body = int64(head.Len()), head
		return out, nil
	}
	part(begin, `file"; filename="`, quoteEscaper.Replace(audio.fileName()), "\"\r\nContent-Type: application/octet-stream\r\n\r\n")
	end = "\r\n" + end
	out.length = int64(head.Len()) + size + int64(len(end))
	out.source = src
	out.body = io.MultiReader(head, &exact{src, size}, strings.NewReader(end))
	return out, nil
}

// quoteEscaper escapes a file name as mime/multipart does. fileName has removed
// line breaks.
var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
