/** The program with its commands. A command is loaded when it is called; the program's own help loads all of them. */
import { Command, CommanderError } from 'commander'
import { TileworkError } from '../index.js'
import { PACKAGE_VERSION } from '../package_version.js'
import { exitCodeOf } from './error_exit_codes.js'
import { EXIT, type ExitCode } from './exit_codes.js'
import { printJson } from './text/printable.js'
import { errorReport, printError } from './text/report_error.js'
import type { Terminal } from './text/terminal.js'

const HELP_END = `
Examples:
  tilework inspect model.btf
  tilework convert model.btf blocked.btf --layout b_fs_yx_fsv16

"tilework COMMAND --help" has examples for each command.
Exit codes: 0 no error, 1 findings of severity error or differences, 2 not readable as any known format,
64 wrong usage, 70 a fault of tilework itself or of its installation, 74 input or output error, 130 cancelled.`

/** Adds a command to the program. `finish` takes the exit code of a command that did not throw. */
type AddCommand = (program: Command, terminal: Terminal, finish: (code: ExitCode) => void) => void

/** In the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  inspect: async () => (await import('./commands/inspect.js')).addInspect,
  check: async () => (await import('./commands/check.js')).addCheck,
  compress: async () => (await import('./commands/compress.js')).addCompress,
  convert: async () => (await import('./commands/convert.js')).addConvert,
  devices: async () => (await import('./commands/devices.js')).addDevices,
  diff: async () => (await import('./commands/diff.js')).addDiff,
  edit: async () => (await import('./commands/edit.js')).addEdit,
  externalize: async () => (await import('./commands/external.js')).addExternalize,
  image: async () => (await import('./commands/image.js')).addImage,
  internalize: async () => (await import('./commands/external.js')).addInternalize,
  layout: async () => (await import('./commands/layout.js')).addLayout,
  merge: async () => (await import('./commands/merge.js')).addMerge,
  optimize: async () => (await import('./commands/optimize.js')).addOptimize,
  queue: async () => (await import('./commands/queue.js')).addQueue,
  view: async () => (await import('./commands/view.js')).addView,
  worker: async () => (await import('./commands/worker.js')).addWorker,
}

/** Parses the arguments and runs the command. Never throws. */
export async function runProgram(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.ok
  const program = createProgram(terminal)
  try {
    for (const load of neededCommands(argv)) {
      const add = await load()
      add(program, terminal, (code) => {
        exitCode = code
      })
    }
    await program.parseAsync(dropUnknownHelpTarget(argv), { from: 'user' })
    return exitCode
  } catch (error) {
    return fail(error, argv, terminal)
  }
}

/** Arguments other than a known command need all commands: for help, and for suggestions after a typo. */
function neededCommands([name = '']: readonly string[]): (() => Promise<AddCommand>)[] {
  return Object.hasOwn(COMMANDS, name) ? [COMMANDS[name]!] : Object.values(COMMANDS)
}

/** For `help NAME` with an unknown command, commander prints the general help; without `help` it suggests the nearest command. */
function dropUnknownHelpTarget(argv: readonly string[]): readonly string[] {
  const [help, name] = argv
  if (help !== 'help' || name === undefined || name.startsWith('-') || Object.hasOwn(COMMANDS, name))
    return argv
  return argv.slice(1)
}

function createProgram(terminal: Terminal): Command {
  return (
    new Command('tilework')
      .description('Opens tensor files, checks them, and moves their numbers between memory layouts.')
      .version(PACKAGE_VERSION, '-V, --version', 'print the version')
      .helpOption('-h, --help', 'print help')
      .helpCommand('help [command]', 'print help for a command')
      .addHelpText('after', HELP_END)
      // Commands inherit these two settings: errors are thrown, and printed in one place.
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
  )
}

function fail(error: unknown, argv: readonly string[], terminal: Terminal): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.ok
    // If no command is given, commander has printed the help already.
    if (error.code === 'commander.help') return EXIT.usage
  }
  const failure = error instanceof CommanderError ? wrongUse(error, argv) : error
  printError(failure, terminal)
  if (wantsJson(argv)) printJson({ error: errorReport(failure) }, terminal)
  return exitCodeOf(failure)
}

function wrongUse(error: CommanderError, [command = '']: readonly string[]): TileworkError {
  const sentence = error.message
    .replace(/^error: /, '')
    .replaceAll('\n', ' ')
    .replace(/\.$/, '')
  const help = Object.hasOwn(COMMANDS, command) ? `tilework ${command} --help` : 'tilework --help'
  return new TileworkError('ERR_ARGUMENT', `${sentence}; see "${help}".`, { cause: error })
}

/** Detects --json without the parser, for errors in the arguments themselves. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end).includes('--json')
}
