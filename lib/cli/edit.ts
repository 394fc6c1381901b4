/** `tilework edit FILE -o OUT`: changes of a model's graph, named on the command line. */
import { type Command, Option } from 'commander'
import {
  type OpenFile,
  type ShapeChange,
  save,
  TileworkError,
  type TmfileModel,
  type WriteMode,
} from '../index.js'
import { formatBytes } from './byte_count.js'
import { EXIT, type ExitCode } from './exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from './open_input.js'
import { numberList } from './parse_shape.js'
import { printJson } from './print_json.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

interface NewName {
  readonly from: string
  readonly to: string
}

interface InputShape {
  readonly name: string
  readonly shape: readonly number[]
}

export interface EditOptions extends ReadChoice {
  readonly output: string
  readonly from?: readonly string[]
  readonly to?: readonly string[]
  readonly outputs?: readonly string[]
  readonly removeNode?: readonly string[]
  readonly setInput?: readonly InputShape[]
  readonly setBatch?: number
  readonly rename?: readonly NewName[]
  readonly castWeights?: 'float32' | 'float16'
  readonly mergeConstants?: boolean
  readonly removeUnused?: boolean
  readonly stripWeights?: boolean
  readonly stripNames?: boolean
  readonly write?: WriteMode
  readonly json?: boolean
}

export interface EditReport {
  readonly input: string
  readonly output: string
  readonly byteLength: number
  /** One sentence a change, in the order in which they were made. */
  readonly changes: readonly string[]
  /** Names of Reshape nodes that may not fit the new shapes. */
  readonly blocked: readonly string[]
}

const EXAMPLES = `
Examples:
  tilework edit model.tmfile --set-input data=1,3,224,224 --rename prob=scores -o out.tmfile
  tilework edit model.tmfile --from conv1 --to pool5 -o backbone.tmfile
  tilework edit model.tmfile --set-batch 8 --strip-weights -o benchmark.tmfile
  tilework edit old.tmfile --write upgrade -o new.tmfile

Changes are made in the order of this list of options, whatever the order of the command. OUT may
be FILE. Bytes that no change needs stay as they are, unless --write says otherwise.`

export function addEdit(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('edit')
    .summary('change the graph of a model')
    .description('Writes a model (tmfile) with other input shapes, names, ends or constants.')
    .argument('<file>', 'a model')
    .requiredOption('-o, --output <file>', 'where to write it')
    .option(
      '--from <tensor>',
      'cut: keep what follows this tensor, which becomes an input; may be repeated',
      collect,
    )
    .option(
      '--to <tensor>',
      'cut: keep what leads to this tensor, whose node becomes an output; may be repeated',
      collect,
    )
    .option(
      '--outputs <tensor>',
      'make this tensor an output, in place of those there are; may be repeated',
      collect,
    )
    .option(
      '--remove-node <node>',
      'take a node out; its input goes on in its place; may be repeated',
      collect,
    )
    .addOption(
      new Option('--set-input <tensor=n,n,…>', 'shape of an input; may be repeated').argParser(collectShape),
    )
    .addOption(new Option('--set-batch <n>', 'first extent of every input').argParser(parseBatch))
    .addOption(
      new Option('--rename <old=new>', 'name of tensors and nodes; may be repeated').argParser(collectName),
    )
    .addOption(
      new Option('--cast-weights <dtype>', 'floats of constants as this type').choices([
        'float32',
        'float16',
      ]),
    )
    .option('--merge-constants', 'let constants with the same bytes share them')
    .option('--remove-unused', 'remove what no output needs')
    .option('--strip-weights', 'leave the numbers of all constants away and keep their sizes')
    .option('--strip-names', 'leave all names away')
    .addOption(
      new Option('--write <mode>', 'how bytes are written that no change needs')
        .choices(['exact', 'canonical', 'upgrade'])
        .default('exact'),
    )
  addReadOptions(command)
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, options: EditOptions) => finish(await edit(file, options, terminal)))
}

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value]

function collectShape(text: string, before: readonly InputShape[] = []): InputShape[] {
  const [name, extents] = splitAt(text, text.lastIndexOf('='), '--set-input takes NAME=N,N,…')
  return [...before, { name, shape: numberList('--set-input')(extents) }]
}

function collectName(text: string, before: readonly NewName[] = []): NewName[] {
  const use = '--rename takes OLD=NEW, with one "="'
  if (text.indexOf('=') !== text.lastIndexOf('='))
    throw new TileworkError('ERR_ARGUMENT', `${use}; "${text}" has several.`)
  const [from, to] = splitAt(text, text.indexOf('='), use)
  return [...before, { from, to }]
}

function splitAt(text: string, at: number, use: string): [string, string] {
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new TileworkError('ERR_ARGUMENT', `${use}; "${text}" is none.`)
}

function parseBatch(text: string): number {
  const batch = /^\d+$/.test(text) ? Number(text) : 0
  if (batch > 0) return batch
  throw new TileworkError('ERR_ARGUMENT', `--set-batch takes a whole number from 1; "${text}" is none.`)
}

/** Runs the command. */
export async function edit(input: string, options: EditOptions, terminal: Terminal): Promise<ExitCode> {
  const file = await openInput(input, options)
  try {
    const report = await editFile(file, input, options, terminal.signal)
    if (options.json) printJson(report, terminal)
    else terminal.stdout.write(formatReport(report))
    return EXIT.ok
  } finally {
    file.close()
  }
}

async function editFile(
  { tmfile: model, format }: OpenFile,
  input: string,
  options: EditOptions,
  signal: AbortSignal,
): Promise<EditReport> {
  if (!model) {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${input} is ${format}, which has no graph that could be edited.`,
    )
  }
  const changes = new ModelChanges(model)
  await changes.make(options)
  let byteLength = 0
  await save(options.output, model, {
    format,
    signal,
    ...(options.write && { mode: options.write }),
    onProgress: ({ bytesTotal }) => {
      byteLength = bytesTotal
    },
  })
  const { made, blocked } = changes
  return { input, output: options.output, byteLength, changes: made, blocked: [...blocked] }
}

/** Makes the changes one after the other and notes each. */
class ModelChanges {
  readonly made: string[] = []
  readonly blocked = new Set<string>()
  readonly #model: TmfileModel

  constructor(model: TmfileModel) {
    this.#model = model
  }

  async make(options: EditOptions): Promise<void> {
    this.#changeGraph(options)
    for (const { name, shape } of options.setInput ?? []) {
      this.#note(`input ${name} is [${shape.join(', ')}]`, this.#model.setInputShape(name, shape))
    }
    if (options.setBatch !== undefined) {
      this.#note(`batch is ${options.setBatch}`, this.#model.setBatch(options.setBatch))
    }
    for (const { from, to } of options.rename ?? []) {
      const count = this.#model.rename(from, to)
      this.#note(`${from} is ${to} now, in ${count} ${count === 1 ? 'place' : 'places'}`)
    }
    if (options.castWeights) {
      const count = this.#model.castWeights(options.castWeights)
      this.#note(`${count} constants are ${options.castWeights}`)
    }
    if (options.mergeConstants) {
      this.#note(`constants share ${formatBytes(await this.#model.mergeConstants())}`)
    }
    this.#strip(options)
  }

  #changeGraph({ from = [], to = [], outputs, removeNode = [] }: EditOptions): void {
    if ((from.length === 0) !== (to.length === 0)) {
      throw new TileworkError('ERR_ARGUMENT', 'A cut has both ends: --from and --to.')
    }
    const before = this.#model.graph.nodes.length
    if (to.length > 0) {
      this.#model.cut(from, to)
      this.#note(
        `cut from ${from.join(', ')} to ${to.join(', ')}: ${this.#model.graph.nodes.length} of ${before} nodes`,
      )
    }
    if (outputs) {
      this.#model.setOutputs(outputs)
      this.#note(`outputs are ${outputs.join(', ')}`)
    }
    for (const name of removeNode) {
      this.#model.removeNode(name)
      this.#note(`node ${name} is out`)
    }
  }

  #strip({ removeUnused, stripWeights, stripNames }: EditOptions): void {
    if (removeUnused) {
      const before = this.#model.graph.nodes.length
      this.#model.removeUnused()
      this.#note(`${before - this.#model.graph.nodes.length} unused nodes are out`)
    }
    if (stripWeights) {
      this.#model.stripWeights()
      this.#note('constants have no numbers')
    }
    if (stripNames) {
      this.#model.stripNames()
      this.#note('nothing has a name')
    }
  }

  #note(change: string, { reshaped, blocked }: ShapeChange = { reshaped: [], blocked: [] }): void {
    this.made.push(change)
    for (const { name } of reshaped) this.made.push(`Reshape ${name ?? '-'} follows`)
    for (const { name } of blocked) this.blocked.add(name ?? '-')
  }
}

function formatReport({ output, byteLength, changes, blocked }: EditReport): string {
  const lines = changes.map((change) => printable(change))
  for (const name of blocked) {
    lines.push(`Reshape ${printable(name)} has a fixed target, which may not fit the new shape`)
  }
  lines.push(`${printable(output)}: ${formatBytes(byteLength)}`)
  return lines.map((line) => `${line}\n`).join('')
}
