#!/usr/bin/env node
/** The process around the command line: signals, broken pipes and the exit code. */
import { EXIT } from './exit_codes.js'
import { run } from './run.js'

const controller = new AbortController()
let isReaderGone = false
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader such as `head` that has seen enough is no error, and files that are being written must be written all
  // the same. Every further write fails as well, some with another code.
  isReaderGone ||= error.code === 'EPIPE'
  if (isReaderGone) return
  process.stderr.write(`tilework: ERR_IO: ${error.message} (stdout)\n`)
  process.exit(EXIT.io)
})
// Without a reader of stderr there is nobody to tell; the work itself must not suffer.
process.stderr.on('error', () => undefined)

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // The first lets a write end and remove its temporary file; the second ends at once.
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
// A check that was let go may still be reading.
if (controller.signal.aborted) process.exit()
