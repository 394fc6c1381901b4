/** The command line as a function: arguments in, exit code out. */
import { PACKAGE_VERSION } from '../package_version.js'
import { EXIT } from './exit_codes.js'
import type { RunOptions } from './text/terminal.js'

export type { OutputStream, RunOptions } from './text/terminal.js'

/**
 * Runs `tilework` with the given arguments (without the names of node and the script). Never throws and never ends
 * the process.
 *
 * @returns the exit code: 0, 1, 2, 64, 70 (a fault of tilework itself), 74 or 130
 */
export async function run(argv: readonly string[], options: RunOptions): Promise<number> {
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
    // Scripts ask for the version before every job, so nothing is loaded for it.
    options.stdout.write(`${PACKAGE_VERSION}\n`)
    return EXIT.ok
  }
  const [{ runProgram }, { createTerminal }] = await Promise.all([
    import('./program.js'),
    import('./text/terminal.js'),
  ])
  return runProgram(argv, createTerminal(options))
}
