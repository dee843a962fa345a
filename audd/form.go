package audd

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
)

// field is one form field, sent in order.
type field struct{ name, value string }

// form is a multipart/form-data body of known length, of which only the
// fields are in memory.
type form struct {
	contentType string
	length      int64
	body        io.Reader
	source      io.Closer // nil without a file
}

// newForm builds the body: the token first, then the fields, then the audio.
// audio nil means that the call has none.
func newForm(token string, fields []field, audio *Audio) (form, error) {
	var src io.ReadCloser
	var size int64
	if audio != nil {
		var err error
		if src, size, err = audio.open(); err != nil {
			return form{}, err
		}
	}
	boundary := rand.Text() // of 130 random bits: no audio holds it
	head := make([]byte, 0, 512)
	part := func(name, more string) {
		head = append(append(head, "--"...), boundary...)
		head = append(append(head, "\r\nContent-Disposition: form-data; name=\""...), name...)
		head = append(append(append(head, '"'), more...), "\r\n\r\n"...)
	}
	add := func(f field) {
		part(f.name, "")
		head = append(append(head, f.value...), "\r\n"...)
	}
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
		head = append(head, end...)
		out.length, out.body = int64(len(head)), bytes.NewReader(head)
		return out, nil
	}
	part("file", `; filename="`+quoteEscaper.Replace(audio.fileName())+"\"\r\nContent-Type: application/octet-stream")
	end = "\r\n" + end
	out.length = int64(len(head)) + size + int64(len(end))
	out.source = src
	out.body = io.MultiReader(bytes.NewReader(head), &exact{src, size}, strings.NewReader(end))
	return out, nil
}

// quoteEscaper escapes a file name as browsers do; it holds no line break.
var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
