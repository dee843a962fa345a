package worker

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/tasks"
)

func TestManySlotsAreTwoServers(t *testing.T) {
	t.Parallel()
	for slots, want := range map[int][]int{1: {1}, 63: {63}, 64: {32, 32}, 65: {33, 32}, 128: {64, 64}} {
		var got []int
		for _, p := range (plan{path: tasks.Recognize, slots: slots, queues: map[string]int{"recognize": 1}}).spread() {
			got = append(got, p.slots)
		}
		require.Equal(t, want, got)
	}
}

func TestServersOfAPathAndOfAGroupWithAShare(t *testing.T) {
	t.Parallel()
	w := &Worker{opts: Options{Slots: Slots{Recognize: 128}}}
	type server struct {
		slots  int
		queues string
	}
	got := map[server]int{}
	names := map[string]bool{}
	for _, p := range w.plans([]admission.Limit{
		{Scope: "group/half", Name: "slot_share", Value: "500"},
		{Scope: "group/heavy", Name: "weight", Value: "4"},
	}) {
		names[p.name()] = true
		got[server{p.slots, strings.Join(slices.Sorted(maps.Keys(p.queues)), " ")}]++
		maps.DeleteFunc(p.queues, func(string, int) bool { return true }) // the servers share no map
	}
	require.Equal(t, map[server]int{{32, "recognize.half"}: 2, {64, "recognize recognize.heavy"}: 2}, got)
	require.Len(t, names, 4, "equal names are the same server")
}
