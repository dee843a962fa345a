package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"reprise/store"
	"reprise/tasks"
)

func genPrice(t *rapid.T, label string) *float64 {
	return rapid.Ptr(rapid.Float64Range(0, 100), true).Draw(t, label)
}

func genAt(t *rapid.T, label string) time.Time {
	return start.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, label)))
}

func genSettlement(t *rapid.T) store.Settlement {
	st := store.Settlement{
		Key: rapid.String().Draw(t, "key"), Generation: rapid.Int64().Draw(t, "generation"),
		Path: rapid.SampledFrom(tasks.Paths).Draw(t, "path"), Queue: rapid.String().Draw(t, "queue"),
		Payload:  rapid.SliceOf(rapid.Byte()).Draw(t, "payload"),
		Finished: rapid.Bool().Draw(t, "finished"), Final: rapid.Bool().Draw(t, "final"),
		Verdict: rapid.SampledFrom(tasks.Verdicts).Draw(t, "verdict"),
		Outcome: rapid.SampledFrom(tasks.Outcomes).Draw(t, "outcome"),
		Reason:  rapid.String().Draw(t, "reason"), At: genAt(t, "at"),
	}
	st.Result = rapid.SampledFrom([][]byte{
		nil, []byte("null"), []byte("{ \"a\": \"<&>\\u2028\" ,\n\"n\":1.0 }"), []byte("\"\xff\""),
	}).Draw(t, "result")
	if rapid.Bool().Draw(t, "with a call") {
		st.Call = &store.Call{
			AttemptID: rapid.String().Draw(t, "attempt"), Key: st.Key, Generation: st.Generation,
			Source: rapid.String().Draw(t, "source"), Path: st.Path, Outcome: st.Outcome, Verdict: st.Verdict,
			Code: rapid.Int().Draw(t, "code"), HTTPStatus: rapid.Int().Draw(t, "status"),
			RequestID: rapid.String().Draw(t, "request"), Phase: rapid.String().Draw(t, "phase"),
			Latency: time.Duration(rapid.Int64().Draw(t, "latency")), Units: rapid.Int64().Draw(t, "units"),
			UnitBasis: rapid.String().Draw(t, "basis"), PossiblyBilled: rapid.Bool().Draw(t, "billed"),
			Price: genPrice(t, "price"), Cost: genPrice(t, "cost"),
			Reason: rapid.String().Draw(t, "call reason"), At: genAt(t, "call at"),
		}
	}
	return st
}

// The outbox stores settlements as JSON. Every field must be preserved, and the result byte for byte.
func TestSettlementSurvivesJSONUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		st := genSettlement(t)
		encoded, err := json.Marshal(st)
		require.NoError(t, err)
		var got store.Settlement
		require.NoError(t, json.Unmarshal(encoded, &got))
		require.Equal(t, st, got)
		again, err := json.Marshal(&got)
		require.NoError(t, err)
		require.Equal(t, string(encoded), string(again))
	})
}

func TestDecodingRejectsSettlementsOfANewerBuild(t *testing.T) {
	t.Parallel()
	var st store.Settlement
	require.ErrorContains(t, json.Unmarshal([]byte(`{"v":2,"Key":"k"}`), &st), "version 2")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"Key":"k"}`), &st), "version 0")
	require.NoError(t, json.Unmarshal([]byte(`{"v":1,"Key":"k","Later":"field"}`), &st))
	require.Equal(t, "k", st.Key)
}
