// Package retrypolicy decides what follows from a call to AudD.
package retrypolicy
