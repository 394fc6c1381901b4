/** `tilework view FILE…`: shows files in the browser, by a server on this machine. */
import { spawn } from 'node:child_process'
import { basename } from 'node:path'
import type { Command } from 'commander'
import { check, type OpenFile, TileworkError } from '../../index.js'
import { startViewServer, type ViewedFile } from '../../view/server/server.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice, readChoice } from '../files/open_input.js'
import { printJson } from '../text/printable.js'
import type { Terminal } from '../text/terminal.js'

export interface ViewOptions extends ReadChoice {
  readonly port: number
  /** False with `--no-open`. */
  readonly open: boolean
  readonly json?: boolean
}

const EXAMPLES = `
Examples:
  tilework view model.onnx
  tilework view before.onnx after.tmfile
  tilework view weights.safetensors --port 8000 --no-open

The page shows tensors, values, memory layouts, graphs, and the differences of two files. Files are read on demand and never
written. Only programs on this machine that know the address with its token can access the server; it runs until Ctrl+C.`

export function addView(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('view')
    .summary('show files in the browser')
    .description(
      'Opens a page in the browser with tensors, values, memory layouts, graphs and differences of files.',
    )
    .argument('<files...>', 'files of any known format')
    .option('--port <n>', 'port on 127.0.0.1; 0 takes a free one', parsePort, 0)
    .option('--no-open', 'print the address without opening a browser')
  addReadOptions(command)
    .option('--json', 'print the address as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (files: string[], options: ViewOptions) => finish(await view(files, options, terminal)))
}

/** Serves the page until the run is cancelled, which is its usual end. */
async function view(paths: readonly string[], options: ViewOptions, terminal: Terminal): Promise<ExitCode> {
  const opened: OpenFile[] = []
  try {
    for (const path of paths) opened.push(await openInput(path, options))
    const files = opened.map(
      (file, at): ViewedFile => ({
        name: basename(paths[at]!),
        file,
        check: (signal) => check(paths[at]!, { ...readChoice(options), signal, level: 'strict' }),
      }),
    )
    const server = await startViewServer(files, options.port)
    try {
      if (options.json) printJson({ url: server.url }, terminal)
      else {
        terminal.stdout.write(`${server.url}\n`)
        terminal.stderr.write('Ctrl+C ends it.\n')
      }
      if (options.open) openBrowser(server.url)
      await aborted(terminal.signal)
    } finally {
      await server.close()
    }
    return EXIT.ok
  } finally {
    for (const file of opened) file.close()
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** The program that opens a URL, by system. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Opens the browser; failures are ignored, because the address is printed as well. */
function openBrowser(url: string): void {
  const [program = 'xdg-open', ...before] = OPENERS[process.platform] ?? []
  const child = spawn(program, [...before, url], { stdio: 'ignore', detached: true })
  child.on('error', () => undefined)
  child.unref()
}

/** @throws TileworkError ERR_ARGUMENT */
function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new TileworkError('ERR_ARGUMENT', `--port is "${text}"; it must be a whole number from 0 to 65535.`)
}
