// Package settings loads the settings of the commands. It also finds the data folder, in which `worker dev` leaves its
// addresses.
//
// A command has one struct, filled with its defaults. The key of a field is its mapstructure tag, else its name in snake
// case: BaseURL is base_url. Load overwrites the defaults from a YAML file, then from the environment, then from the
// given flags. The variable of a key is REPRISE_ and the key with underscores for dots: redis.url is REPRISE_REDIS_URL.
// Unknown keys, blank text, wrong types and values out of range are errors that name the key and show no value.
//
// Struct tags describe a field:
//
//	secret:"true"    masked when printed; KEY_file reads it from a file
//	secret:"url"     the same, but only user, password and query are masked
//	name:"true"      trimmed and lower-cased, with a warning
//	variable:"true"  holds the name of an environment variable
//	min:"0"          the smallest value
package settings
