/** The command line as a function: arguments in, exit code out. */
import { Command, CommanderError } from 'commander'
import { TileworkError } from '../index.js'
import { PACKAGE_VERSION } from '../package_version.js'
import { addCheck } from './commands/check.js'
import { addConvert } from './commands/convert.js'
import { addDevices } from './commands/devices.js'
import { addEdit } from './commands/edit.js'
import { addExternalize, addInternalize } from './commands/external.js'
import { addInspect } from './commands/inspect.js'
import { addLayout } from './commands/layout.js'
import { EXIT, type ExitCode, exitCodeOf } from './exit_codes.js'
import { printJson } from './text/print_json.js'
import { errorReport, printError } from './text/report_error.js'
import { createTerminal, type RunOptions, type Terminal } from './text/terminal.js'

export type { OutputStream, RunOptions } from './text/terminal.js'

const HELP_END = `
Examples:
  tilework inspect model.btf
  tilework convert model.btf blocked.btf --layout b_fs_yx_fsv16

"tilework COMMAND --help" has examples for each command.
Exit codes: 0 no error, 1 findings of severity error, 2 not readable as any known format,
64 wrong use, 70 a fault of tilework itself or of its installation, 74 input or output error, 130 cancelled.`

/**
 * Runs `tilework` with the given arguments (without the names of node and the script). Never throws and never ends
 * the process.
 *
 * @returns the exit code: 0, 1, 2, 64, 70 (a fault of tilework itself), 74 or 130
 */
export async function run(argv: readonly string[], options: RunOptions): Promise<number> {
  const terminal = createTerminal(options)
  let exitCode: ExitCode = EXIT.ok
  const program = createProgram(terminal, (code) => {
    exitCode = code
  })
  try {
    await program.parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    return fail(error, argv, terminal)
  }
}

const COMMANDS = [
  addInspect,
  addCheck,
  addConvert,
  addDevices,
  addEdit,
  addExternalize,
  addInternalize,
  addLayout,
]

function createProgram(terminal: Terminal, finish: (code: ExitCode) => void): Command {
  const program = new Command('tilework')
    .description('Opens tensor files, checks them, and moves their numbers between memory layouts.')
    .version(PACKAGE_VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .addHelpText('after', HELP_END)
    // Commands made below take over these two: errors come back as exceptions and are printed in one place.
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
      outputError: () => undefined,
      getOutHasColors: () => terminal.colorsOn,
      getErrHasColors: () => false,
      getOutHelpWidth: () => terminal.width,
      getErrHelpWidth: () => terminal.width,
    })
  for (const add of COMMANDS) add(program, terminal, finish)
  return program
}

function fail(error: unknown, argv: readonly string[], terminal: Terminal): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.ok
    // Without a command commander has printed the help; there is nothing to add.
    if (error.code === 'commander.help') return EXIT.usage
  }
  const failure = error instanceof CommanderError ? wrongUse(error) : error
  printError(failure, terminal)
  if (wantsJson(argv)) printJson({ error: errorReport(failure) }, terminal)
  return exitCodeOf(failure)
}

function wrongUse(error: CommanderError): TileworkError {
  const sentence = error.message
    .replace(/^error: /, '')
    .replaceAll('\n', ' ')
    .replace(/\.$/, '')
  return new TileworkError('ERR_ARGUMENT', `${sentence}; see "tilework --help".`, { cause: error })
}

/** Arguments that could not be parsed may still say how their error is to be told. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end).includes('--json')
}
