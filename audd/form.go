package audd

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
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
	var head bytes.Buffer
	w := multipart.NewWriter(&head)
	if audio != nil && audio.URL != "" {
		fields = append(fields, field{"url", audio.URL})
	}
	for _, f := range append([]field{{"api_token", token}}, fields...) {
		if err := w.WriteField(f.name, f.value); err != nil {
			return form{}, fmt.Errorf("write form field %s: %w", f.name, err)
		}
	}
	out := form{contentType: w.FormDataContentType()}
	var src io.ReadCloser
	var size int64
	if audio != nil {
		var err error
		if src, size, err = audio.open(); err != nil {
			return form{}, err
		}
	}
	if src == nil {
		if err := w.Close(); err != nil {
			return form{}, fmt.Errorf("end the form: %w", err)
		}
		out.length, out.body = int64(head.Len()), &head
		return out, nil
	}
	if _, err := w.CreateFormFile("file", audio.fileName()); err != nil {
		_ = src.Close() // nothing was read; the first error says it all
		return form{}, fmt.Errorf("start the file part: %w", err)
	}
	headLen := head.Len()
	if err := w.Close(); err != nil {
		_ = src.Close() // as above
		return form{}, fmt.Errorf("end the form: %w", err)
	}
	whole := head.Bytes()
	out.length = int64(len(whole)) + size
	out.source = src
	out.body = io.MultiReader(bytes.NewReader(whole[:headLen]), &exact{src, size}, bytes.NewReader(whole[headLen:]))
	return out, nil
}
