// Package webui tests the web UI in a browser.
package webui

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
)

// patience bounds every wait, so that a test that hangs fails. It is long because a browser starts slowly on a busy
// machine.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { os.Exit(proctest.Build(m, "worker").Run()) }

// browser returns the path of Chromium or Chrome. It skips the test if neither is installed.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium on this machine: apt-get install chromium runs the browser test")
	return ""
}

// dev starts `worker dev` and returns the address of its web UI as soon as it is printed.
func dev(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	p := proctest.Start(t, []string{"REPRISE_DATA=" + data}, "worker", "dev", "--admin", "127.0.0.1:0")
	t.Cleanup(func() { p.Stop(patience) })
	var found struct{ UI string }
	proctest.Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(data, "addresses.json"))
		return err == nil && json.Unmarshal(raw, &found) == nil && found.UI != ""
	})
	return found.UI
}

func tab(t *testing.T, path string) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*patience)
	t.Cleanup(cancel)
	return ctx
}

func TestWebUIShowsQueuesAndWhyATaskWasArchived(t *testing.T) {
	t.Parallel()
	path := browser(t)
	ui := dev(t)
	ctx := tab(t, path)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(ui), chromedp.WaitVisible(chromedp.Search(`//a[text()="recognize"]`))))
	archived := func() bool {
		resp, err := http.Get(ui + "ui/api/queues/recognize")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var q struct {
			Current struct {
				Archived  int `json:"archived"`
				Completed int `json:"completed"`
			} `json:"current"`
		}
		return json.NewDecoder(resp.Body).Decode(&q) == nil && q.Current.Archived == 1 && q.Current.Completed == 3
	}
	proctest.Eventually(t, archived)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(ui+"ui/queues/recognize?status=archived"),
		chromedp.WaitVisible(chromedp.Search(`//*[contains(text(),"invalid_audio")]`))))
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(ui), chromedp.WaitVisible(chromedp.Search(`//a[text()="recognize"]`))))
	shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	if file := os.Getenv("WEBUI_SCREENSHOT"); file != "" {
		require.NoError(t, os.WriteFile(file, shot, 0o644))
	}
}
