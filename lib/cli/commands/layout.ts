/** `tilework layout NAME`: explains a layout, lists the offset of each element of a shape, and draws it. */
import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import {
  LAYOUT_NAMES,
  type Layout,
  parseLayout,
  resolveDtype,
  type StorageOptions,
  TileworkError,
} from '../../index.js'
import { describeLayout, drawLayoutSvg, drawLayoutText } from '../../layout.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { numberList } from '../text/parse_shape.js'
import { printJson } from '../text/printable.js'
import { ioError } from '../text/report_error.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'
import { coordinates, listOffsets } from './layout_offsets.js'
import { noClobberOption, type OutputChoice } from './output_options.js'

export interface LayoutOptions extends Partial<Pick<OutputChoice, 'clobber'>> {
  readonly list?: boolean
  readonly shape?: readonly number[]
  readonly padLower?: readonly number[]
  readonly padUpper?: readonly number[]
  readonly dtype?: string
  readonly offsets?: boolean
  readonly svg?: string
  readonly json?: boolean
}

const EXAMPLES = `
Examples:
  tilework layout b_fs_yx_fsv16
  tilework layout b_fs_yx_fsv16 --shape 2,2,2,2
  tilework layout b_fs_yx_fsv16 --shape 2,19,5,7 --pad-lower 0,3,1,1 --offsets --json
  tilework layout os_is_yx_isv16_osv16 --shape 32,32,3,3 --svg layout.svg
  tilework layout --list

Numbers are separated by commas, in the logical order of the axes; trailing ones may be
omitted. Offsets count elements (nibbles for 4-bit dtypes) and are listed with the last axis fastest.`

export function addLayout(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  program
    .command('layout')
    .summary('explain and draw a memory layout')
    .description('Explains a memory layout and draws the offset of each element of a shape.')
    .argument('[name]', 'a name of --list, an alias, or any other name of the grammar')
    .option('--list', 'print the names of all known layouts')
    .option('--shape <n,n,…>', 'logical shape to store', numberList('--shape'))
    .option('--pad-lower <n,n,…>', 'extra elements before each axis', numberList('--pad-lower'))
    .option('--pad-upper <n,n,…>', 'extra elements after each axis', numberList('--pad-upper'))
    .option('--dtype <name>', 'dtype; 4-bit dtypes change the order of some layouts')
    .option('--offsets', 'list the offset of every element')
    .option('--svg <file>', 'write the drawing as an SVG')
    .addOption(noClobberOption())
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (name: string | undefined, options: LayoutOptions) =>
      finish(await layout(name, options, terminal)),
    )
}

/** Runs the command. */
export async function layout(
  name: string | undefined,
  options: LayoutOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  if (/\.(?:png|jpe?g|gif|webp|pdf)$/i.test(options.svg ?? '')) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `--svg writes an SVG; name a file that ends in .svg, not ${options.svg}.`,
    )
  }
  if (options.list) listLayouts(name, options, terminal)
  else if (name === undefined) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      'layout needs a name; "tilework layout --list" prints the known names.',
    )
  } else if (options.shape === undefined) explain(parseLayout(name), options, terminal)
  else await bindToShape(parseLayout(name), options.shape, options, terminal)
  return EXIT.ok
}

function listLayouts(name: string | undefined, options: LayoutOptions, terminal: Terminal): void {
  const { list, json, clobber: _, ...others } = options
  if (name !== undefined || Object.keys(others).length > 0) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      '--list prints all layouts; it takes no name and only the flag --json.',
    )
  }
  if (json) printJson({ names: LAYOUT_NAMES }, terminal)
  else if (terminal.stdoutIsTerminal) {
    const columns = ['name', 'kind', 'axes', 'memory order'].map((title) => ({ title }))
    const rows = LAYOUT_NAMES.map((name) => {
      const { kind, axes, order } = parseLayout(name)
      return [name, kind, axes, order]
    })
    terminal.stdout.write(formatTable(columns, rows, terminal.colors))
  } else terminal.stdout.write(`${LAYOUT_NAMES.join('\n')}\n`)
}

/** The properties of a layout that do not depend on a shape. */
function description({ name, kind, axes, order, onednnTag, aliases, notes }: Layout): object {
  return { name, kind, axes, order, ...(onednnTag !== undefined && { onednnTag }), aliases, notes }
}

function explain(layout: Layout, options: LayoutOptions, terminal: Terminal): void {
  if (options.dtype !== undefined) resolveDtype(options.dtype)
  const { padLower, padUpper, dtype, offsets, svg } = options
  if (padLower ?? padUpper ?? dtype ?? offsets ?? svg) {
    const which = '--pad-lower, --pad-upper, --dtype, --offsets and --svg'
    throw new TileworkError('ERR_ARGUMENT', `${which} need --shape, for example --shape 2,19,5,7.`)
  }
  if (options.json) printJson(description(layout), terminal)
  else terminal.stdout.write(`${describeLayout(layout).join('\n')}\n`)
}

/** Prints the layout bound to a shape. */
async function bindToShape(
  layout: Layout,
  shape: readonly number[],
  options: LayoutOptions,
  terminal: Terminal,
): Promise<void> {
  const storageOptions = storageOptionsOf(options)
  const { elements, byteLength, digits, extents } = layout.storage(shape, storageOptions)
  const offsets = options.offsets ? listOffsets(layout, shape, storageOptions) : undefined
  if (options.svg !== undefined) {
    await writeSvg(options.svg, drawLayoutSvg(layout, shape, storageOptions), options)
  }
  if (options.json) {
    const bound = {
      shape,
      extents,
      ...storageOptions,
      elements,
      byteLength,
      digits,
      ...(offsets && { offsets }),
    }
    printJson({ ...description(layout), ...bound }, terminal)
  } else if (offsets) printOffsets(shape, offsets, terminal)
  else if (options.svg === undefined) {
    const { colorsOn: color, width } = terminal
    const drawing = drawLayoutText(layout, shape, { ...storageOptions, color, width })
    terminal.stdout.write(drawing.endsWith('\n') ? drawing : `${drawing}\n`)
  } else if (terminal.stderrIsTerminal) terminal.stderr.write(`Wrote ${options.svg}.\n`)
}

function storageOptionsOf({ padLower, padUpper, dtype }: LayoutOptions): StorageOptions {
  return {
    ...(padLower && { lower: padLower }),
    ...(padUpper && { upper: padUpper }),
    ...(dtype !== undefined && { dtype: resolveDtype(dtype) }),
  }
}

/** One line per element with two columns, its coordinate and its offset, for other programs. */
function printOffsets(shape: readonly number[], offsets: readonly number[], { stdout }: Terminal): void {
  const lines: string[] = []
  let position = 0
  for (const index of coordinates(shape)) lines.push(`${index.join(',')}\t${offsets[position++]}\n`)
  stdout.write(lines.join(''))
}

async function writeSvg(path: string, svg: string, { clobber }: LayoutOptions): Promise<void> {
  try {
    await writeFile(path, svg, { flag: clobber === false ? 'wx' : 'w' })
  } catch (cause) {
    throw ioError(`The drawing cannot be written to ${path}`, path, cause)
  }
}
