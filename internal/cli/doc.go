// Package cli is what the commands in cmd share: exit codes, help, tables, JSON output, errors in one line, and the
// settings of commands that connect to a queue.
//
// Every command is a Program. Its main calls Program.Main, and its tests call Program.Run with their own arguments,
// environment and streams.
package cli
