package store

import (
	"encoding/json"
	"fmt"
)

// settlementVersion is the version of the JSON form this build writes and the
// newest it reads.
const settlementVersion = 1

// plainSettlement has Settlement's fields without its methods.
type plainSettlement Settlement

// wireSettlement carries the result as bytes: encoding/json would rewrite a
// RawMessage (white space, <, >, &) on its way.
type wireSettlement struct {
	Version int `json:"v"`
	plainSettlement
	Result []byte
}

// MarshalJSON writes the versioned form that UnmarshalJSON reads back exactly.
func (st Settlement) MarshalJSON() ([]byte, error) {
	w := wireSettlement{Version: settlementVersion, plainSettlement: plainSettlement(st), Result: st.Result}
	w.plainSettlement.Result = nil
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode settlement of %q: %w", st.Key, err)
	}
	return raw, nil
}

// UnmarshalJSON reads what MarshalJSON wrote and refuses a newer version.
func (st *Settlement) UnmarshalJSON(raw []byte) error {
	var w wireSettlement
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("decode settlement: %w", err)
	}
	if w.Version < 1 || w.Version > settlementVersion {
		return fmt.Errorf("decode settlement: version %d, this build reads 1 to %d", w.Version, settlementVersion)
	}
	*st = Settlement(w.plainSettlement)
	st.Result = w.Result
	return nil
}
