package tasks_test

import (
	"encoding/json"
	"fmt"

	"reprise/tasks"
)

// The signature of a URL, the source and a default parameter are not part of
// the key: all three tasks are the same work.
func ExampleKey() {
	const url = "https://bucket.s3.example/clip.mp3"
	plain := tasks.Input{Kind: tasks.URLInput, URL: url}
	signed := tasks.Input{Kind: tasks.URLInput, URL: url + "?X-Amz-Date=20260131T120000Z&X-Amz-Signature=3f2c"}
	fmt.Println(tasks.Key(tasks.Recognize, plain, tasks.Params{}))
	fmt.Println(tasks.Key(tasks.Recognize, signed, tasks.Params{Source: "backup"}))
	fmt.Println(tasks.Key(tasks.Recognize, plain, tasks.Params{Market: "us"}))
	// Output:
	// recognize_2qsprr53ybanucibwufwqe6kffqdyaxfvwopclni2ys5jzypnpla
	// recognize_2qsprr53ybanucibwufwqe6kffqdyaxfvwopclni2ys5jzypnpla
	// recognize_2qsprr53ybanucibwufwqe6kffqdyaxfvwopclni2ys5jzypnpla
}

func ExampleDecode() {
	audioID := int64(146)
	in := tasks.Input{
		Kind: tasks.FileInput, Path: "/audio/track.mp3", Size: 4_200_000,
		SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	}
	p, err := tasks.New(tasks.Upload, in, tasks.Params{AudioID: &audioID, Source: "main"}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := json.Marshal(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := tasks.Decode("audd:upload", raw)
	fmt.Println(got.Path, got.Input.Path, *got.Params.AudioID, got.Params.Source, err)

	_, err = tasks.Decode("audd:upload", []byte(`{"v":2}`))
	fmt.Println(err)
	// Output:
	// upload /audio/track.mp3 146 main <nil>
	// payload version 2, this worker reads up to 1: payload is newer than this worker
}
