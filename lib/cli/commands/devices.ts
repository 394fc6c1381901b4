/** `tilework devices`: the OpenCL devices that `convert --device` can use. */
import type { Command } from 'commander'
import { devices } from '../../index.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { formatBytes } from '../text/byte_count.js'
import { printable, printJson } from '../text/printable.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'

const COLUMNS = [
  { title: 'id' },
  { title: 'type' },
  { title: 'name' },
  { title: 'memory', align: 'right' },
  { title: 'platform' },
  { title: 'version' },
] as const

export function addDevices(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  program
    .command('devices')
    .summary('list the OpenCL devices')
    .description('Lists the OpenCL devices that "convert --device" can use.')
    .option('--json', 'print JSON')
    .action((options: { readonly json?: boolean }) => finish(listDevices(options, terminal)))
}

function listDevices({ json }: { readonly json?: boolean }, terminal: Terminal): ExitCode {
  const found = devices()
  if (json) printJson({ devices: found }, terminal)
  else if (found.length === 0) terminal.stderr.write('tilework: no OpenCL device found.\n')
  else {
    const rows = found.map(({ id, type, name, memory, unifiedMemory, platform, version }) => [
      id,
      type,
      printable(name),
      `${formatBytes(memory)}${unifiedMemory ? ', shared' : ''}`,
      printable(platform),
      printable(version),
    ])
    terminal.stdout.write(formatTable(COLUMNS, rows, terminal.colors))
  }
  return EXIT.ok
}
