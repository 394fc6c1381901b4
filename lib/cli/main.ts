#!/usr/bin/env node
/** The process around the command line: signals, broken pipes and the exit code. */
import { EXIT } from './exit_codes.js'
import { run } from './run.js'

const controller = new AbortController()
let isReaderGone = false
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader such as `head` may close the pipe early. Files in progress must still be written. Every further write
  // to stdout fails as well, some with another code.
  isReaderGone ||= error.code === 'EPIPE'
  if (isReaderGone) return
  process.stderr.write(`tilework: ERR_IO: ${error.message} (stdout)\n`)
  process.exit(EXIT.io)
})
// If nobody reads stderr, errors cannot be printed, but the work must continue.
process.stderr.on('error', () => undefined)

// On Windows SIGBREAK is Ctrl+Break, and SIGHUP means that the console window is closed.
for (const signal of [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  ...(process.platform === 'win32' ? (['SIGBREAK'] as const) : []),
] as const) {
  process.on(signal, () => {
    // The first signal lets a write finish and remove its temporary file; the second exits at once.
    if (controller.signal.aborted) process.exit(EXIT.cancelled)
    controller.abort(new Error(signal))
  })
}

const { stdout, stderr, env } = process
process.exitCode = await run(process.argv.slice(2), {
  stdin: () => process.stdin,
  stdout,
  stderr,
  env,
  isReaderGone: () => isReaderGone,
  signal: controller.signal,
})
// A cancelled check may still be reading.
if (controller.signal.aborted) process.exit()
