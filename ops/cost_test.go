package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/store"
)

func TestCostReport_CountsUnpricedUnitsSeparately(t *testing.T) {
	t.Parallel()
	price := 0.005
	sums := []store.CallSum{
		{Of: "spare", Calls: 1, Units: 1, UnpricedCalls: 1, UnpricedUnits: 1},
		{Of: "main", Calls: 2, Units: 3, Cost: &price, EstimatedUnits: 2},
		{Of: "main", Calls: 2, Units: 3, Cost: &price, UnpricedCalls: 1, UnpricedUnits: 2, PossiblyBilled: 1, UnknownUnits: 1},
	}
	r := NewCostReport(BySource, sums, 0)
	require.Len(t, r.Rows, 2)
	require.Equal(t, "main", r.Rows[0].Of)
	require.InDelta(t, 0.01, *r.Rows[0].Cost, 1e-9)
	require.Nil(t, r.Rows[0].CostAtPrice, "two units have no price")
	require.Equal(t, int64(7), r.Total.Units)
	require.Equal(t, int64(3), r.Total.UnpricedUnits)
	require.Equal(t, []string{
		"the price of 3 units in 2 calls", "whether AudD billed 1 call that ended without a result", "the units of 1 call",
		"AudD's own count for 2 units, which are estimated",
	}, r.Gaps)
	require.InDelta(t, 0.005, price, 0, "the sums keep their own prices")

	r = NewCostReport(BySource, sums, 5)
	require.InDelta(t, 0.025, *r.Total.CostAtPrice, 1e-9)
	require.Equal(t, "the price of 3 units in 2 calls when they were made; they are counted at $5.00/1000", r.Gaps[0])
}

func TestMoney_IsUnknownWithoutAPrice(t *testing.T) {
	t.Parallel()
	require.Equal(t, "unknown", costRow("", store.CallSum{UnpricedUnits: 3}, 0).Money())
	require.Equal(t, "$0.00", costRow("", store.CallSum{}, 0).Money())
	require.Equal(t, "price unknown (--price-per-1000)", costRow("", store.CallSum{UnpricedUnits: 3}, 0).Sentence())
	cost := 0.5
	require.Equal(t, "$0.5000 and 3 units of unknown price (--price-per-1000)", costRow("", store.CallSum{UnpricedUnits: 3, Cost: &cost}, 0).Sentence())
}
