package ops

import (
	"fmt"
	"strings"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// manualHalt begins the reason of an operator's halt, so that their words are not taken for the name of an outcome.
const manualHalt = "manual:"

// haltReason is the name of an outcome or, for an operator's halt, their words.
func haltReason(reason string) string {
	if rest, ok := strings.CutPrefix(reason, manualHalt); ok {
		return "manual: " + strings.TrimSpace(words(rest))
	}
	return text.Printable(reason)
}

// haltStep is what an operator does about a halted source.
func haltStep(st admission.SourceState) string {
	resume := fmt.Sprintf("inspect resume %s/%s", st.Source, st.Path)
	switch tasks.Outcome(st.Halt) {
	case tasks.Authentication:
		return "fix the token, then " + resume
	case tasks.Quota:
		return "raise the account's quota, then " + resume
	case tasks.Subscription:
		return "renew the subscription, then " + resume
	case tasks.Blocked:
		return "ask AudD what blocks the account, then " + resume
	default: // an operator's halt, or a wrong base URL
		return resume
	}
}
