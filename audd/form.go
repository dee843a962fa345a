package audd

import (
	"crypto/rand"
	"io"
	"strings"
)

// field is one form field. Fields are sent in order.
type field struct{ name, value string }

// form is a multipart/form-data body of known length. Only the fields are in memory.
type form struct {
	contentType string
	length      int64
	body        io.Reader
	source      io.Closer // nil without a file
}

// newForm builds the body from the token, the fields and the audio, in this order. audio may be nil. mime/multipart
// is not used because the length must be known before the body is written.
func newForm(token string, fields []field, audio *Audio) (form, error) {
	var src io.ReadCloser
	var size int64
	all := append([]field{{"api_token", token}}, fields...)
	if audio != nil {
		var err error
		if src, size, err = audio.open(); err != nil {
			return form{}, err
		}
		if audio.URL != "" {
			all = append(all, field{"url", audio.URL})
		}
	}
	boundary := rand.Text() // 130 random bits, so no audio contains them by chance
	begin := "--" + boundary + "\r\nContent-Disposition: form-data; name=\""
	end := "--" + boundary + "--\r\n"
	var head strings.Builder
	for _, f := range all {
		head.WriteString(begin + f.name + "\"\r\n\r\n" + f.value + "\r\n")
	}
	out := form{contentType: "multipart/form-data; boundary=" + boundary}
	if src == nil {
		text := head.String() + end
		out.length, out.body = int64(len(text)), strings.NewReader(text)
		return out, nil
	}
	head.WriteString(begin + `file"; filename="` + quoteEscaper.Replace(audio.fileName()) +
		"\"\r\nContent-Type: application/octet-stream\r\n\r\n")
	end = "\r\n" + end
	out.length = int64(head.Len()) + size + int64(len(end))
	out.source = src
	out.body = io.MultiReader(strings.NewReader(head.String()), &exact{src, size}, strings.NewReader(end))
	return out, nil
}

// quoteEscaper escapes a file name as mime/multipart does. It need not escape line breaks, which fileName removes.
var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
