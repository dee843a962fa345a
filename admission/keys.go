package admission

// DefaultPrefix is in front of every key. The braces put all keys into one
// Redis Cluster slot, because every decision reads several of them at once.
const DefaultPrefix = "reprise:{adm}:"
