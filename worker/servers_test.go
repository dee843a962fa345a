package worker

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
)

func TestGroupWithAShareOfTheSlotsHasItsOwnServer(t *testing.T) {
	t.Parallel()
	cordoned := ""
	s := &servers{slots: Slots{Recognize: 128}, cordoned: func(queue string) bool { return queue == cordoned }}
	type planned struct {
		slots  int
		queues string
	}
	plans := func() map[planned]bool {
		got := map[planned]bool{}
		for _, p := range s.plans([]admission.Limit{
			{Scope: "group/half", Name: "slot_share", Value: "500"},
			{Scope: "group/heavy", Name: "weight", Value: "4"},
		}) {
			got[planned{p.slots, strings.Join(slices.Sorted(maps.Keys(p.queues)), " ")}] = true
		}
		return got
	}
	require.Equal(t, map[planned]bool{{64, "recognize.half"}: true, {128, "recognize recognize.heavy"}: true}, plans())
	cordoned = "recognize.half"
	require.Equal(t, map[planned]bool{{128, "recognize recognize.heavy"}: true}, plans(), "a cordoned queue is not served")
}
