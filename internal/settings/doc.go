// Package settings loads the settings of the commands and finds the data
// folder in which `worker dev` leaves its addresses.
//
// A command has one struct with mapstructure tags, filled with its defaults.
// Load lays over it, each beating the one before: a YAML file, the environment
// (REPRISE_ and the key with dots as underscores: redis.url is
// REPRISE_REDIS_URL), and flags that were given.
//
// Nothing is repaired silently: unknown keys, blank texts and wrong types are
// errors that name the key. Struct tags say more about a field:
//
//	secret:"true"  masked when printed; KEY_file reads it from a file
//	secret:"url"   the same, but only user, password and query are masked
//	share:"true"   a part of a whole: 70% or 0.7
//	name:"true"    trimmed and lower-cased, with a warning
package settings
