// Package cli is what the commands in cmd share: exit codes, help, tables,
// number formats, JSON output, errors as sentences, and the settings of the
// commands that talk to a queue.
//
// Every command is a Program: its main calls Program.Main, and its tests call
// Program.Run with arguments, environment and streams of their own.
package cli
