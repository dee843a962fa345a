package audd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"reprise/audd"
)

// example returns a client and its server, which answers every request with the same response.
func example(status int, body string) (*audd.Client, func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	cfg := audd.DefaultConfig()
	cfg.Token = func() string { return "the API token" }
	cfg.BaseURL = server.URL
	client, err := audd.New(cfg)
	if err != nil {
		panic(err)
	}
	return client, server.Close
}

// AudD published this response with its OpenAPI description.
func ExampleClient_Recognize() {
	body, err := os.ReadFile("testdata/recognize_basic.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, stop := example(http.StatusOK, string(body))
	defer stop()
	clip := "the bytes of a clip"
	got, err := client.Recognize(context.Background(), audd.RecognizeRequest{Audio: audd.Audio{
		Name: "clip.mp3",
		Open: func() (io.ReadCloser, int64, error) {
			return io.NopCloser(strings.NewReader(clip)), int64(len(clip)), nil
		},
	}})
	fmt.Println(got.HTTPStatus, got.Song.Artist, "-", got.Song.Title, err)
	// Output:
	// 200 Tears For Fears - Everybody Wants To Rule The World <nil>
}

// The hook runs before the first byte of the body, so AudD bills nothing if it fails.
func ExampleBeforeBody() {
	client, stop := example(http.StatusOK, `{"status":"success","result":null}`)
	defer stop()
	_, err := client.Upload(context.Background(), audd.UploadRequest{
		Audio:      audd.Audio{URL: "https://example.test/track.mp3"},
		AudioID:    7,
		BeforeBody: func(context.Context) error { return errors.New("another attempt holds the latch") },
	})
	fmt.Println(err)
	// Output:
	// audd: upload: stopped before the body was sent: another attempt holds the latch [unsent]
}
