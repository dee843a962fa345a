package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/hibiken/asynq"

	"reprise/tasks"
)

// benchBareProcess is the bare side of e2e: an asynq server whose handler reads
// the file of a task, posts it and stores nothing. It runs until ctx ends.
func benchBareProcess(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags("e2e-bare", out)
	addr := flags.String("redis", "127.0.0.1:6379", "address of Redis")
	url := flags.String("url", "http://127.0.0.1:8700/", "address of the simulator")
	slots := flags.Int("slots", 64, "tasks worked on at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 128}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	srv := asynq.NewServer(asynq.RedisClientOpt{Addr: *addr, PoolSize: *slots + 10}, asynq.Config{
		Concurrency: *slots, Queues: map[string]int{tasks.Recognize.Queue(""): 1}, LogLevel: asynq.WarnLevel,
		TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: time.Second,
	})
	handler := func(ctx context.Context, t *asynq.Task) error {
		p, err := tasks.Decode(t.Type(), t.Payload())
		if err != nil {
			return err
		}
		return postClip(ctx, client, *url, p.Input.Path)
	}
	if err := srv.Start(asynq.HandlerFunc(handler)); err != nil {
		return fmt.Errorf("start asynq: %w", err)
	}
	<-ctx.Done()
	srv.Shutdown()
	return nil
}

// postClip sends a file as AudD's recognize expects it and reads the answer.
func postClip(ctx context.Context, client *http.Client, url, path string) error {
	audio, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read a clip: %w", err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("api_token", "bench-token") // writes to a buffer do not fail
	part, _ := form.CreateFormFile("file", filepath.Base(path))
	_, _ = part.Write(audio)
	_ = form.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &body)
	if err != nil {
		return fmt.Errorf("build the request: %w", err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("post a clip: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer has status %s", resp.Status)
	}
	return nil
}
