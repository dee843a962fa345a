// Command inspect is the operator's tool: it shows what waits and why, what is
// paused or halted and what it cost, and has the commands that change that.
package main

func main() { program.Main() }
