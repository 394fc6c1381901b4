/**
 * ONNX models of 1 GiB and of 100,000 nodes: opening a model compared with the Python package onnx, saving an edited model
 * compared with a plain copy, opening many nodes compared with protobufjs, and edits of many nodes compared with all of them
 * and onnx_ir. The peers are not dependencies: Python is given by `--python`, and protobufjs by a folder that has it installed.
 */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { open, save, tensor } from '../dist/index.js'
import { importFrom } from '../scripts/optional_package.mjs'
import { copyInBlocks } from './block_copy.mjs'
import { initializerName, writeInitializers, writeNodes } from './onnx_models.mjs'
import { onnxTypes } from './onnx_protobufjs.mjs'
import { measureScale } from './onnx_scale.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const execute = promisify(execFile)
const COMMAND = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const OPEN_ONE = fileURLToPath(new URL('onnx_open_one.mjs', import.meta.url))
const PYTHON_LOAD = `
import sys, time, onnx
path, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
took = []
for _ in range(times):
    started = time.perf_counter()
    model = onnx.load(path)
    array = onnx.numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == name))
    took.append(time.perf_counter() - started)
    value = float(array.reshape(-1)[-1])
    del model, array
print(took[0], min(took), value)
`
/** Number of times one process opens the model; from the second time on, code is compiled and memory is allocated. */
const OUR_TIMES = 20
const PYTHON_TIMES = 3

const CASES = { open: measureOpen, save: measureSave, nodes: measureNodes, scale: measureScale }

export function addOnnx(program) {
  program
    .command('onnx')
    .description(
      'opening, editing and saving ONNX models, compared with Python onnx and onnx_ir, a copy, and protobufjs',
    )
    .option('--case <name...>', `any of ${Object.keys(CASES).join(', ')}`, Object.keys(CASES))
    .option('--mib <n>', 'size of the model of initializers', Number, 1024)
    .option('--initializers <n>', 'number of its initializers', Number, 5000)
    .option('--nodes <n>', 'number of nodes of the other model', Number, 100_000)
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 5)
    .option('--python <path>', 'Python with onnx', 'python3')
    .option('--protobufjs <folder>', 'folder with protobufjs installed', '.')
    .option('--folder <path>', 'folder for the files', tmpdir())
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure(options) {
  const folder = mkdtempSync(join(options.folder, 'tilework-bench-'))
  try {
    const rows = []
    for (const name of options.case) rows.push(...(await CASES[name](folder, options)))
    report(rows, options)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Every round runs in new processes with the file in the page cache; Python's time starts after its imports. */
async function measureOpen(folder, { mib, initializers, rounds, python }) {
  const path = join(folder, 'initializers.onnx')
  writeInitializers(path, { bytes: mib * 1024 * 1024, count: initializers })
  readFileSync(path)
  const name = initializerName(Math.floor(initializers / 2))
  const ours = []
  const theirs = []
  for (let round = 0; round < rounds; round++) {
    const { stdout } = await execute(process.execPath, [OPEN_ONE, path, name, String(OUR_TIMES)])
    ours.push(JSON.parse(stdout))
    const loaded = loadInPython(python, path, name, ours.at(-1).value)
    if (loaded) theirs.push(loaded)
  }
  if (theirs.length === 0) console.error(`skipped: ${python} has no onnx`)
  return ['first', 'best'].map((which) => {
    const least = (list) => Math.min(...list.map((each) => each[which]))
    return {
      case: `open and touch one tensor, ${which === 'first' ? 'first in a process' : 'later'}`,
      seconds: short(least(ours)),
      'anonymous MiB': Math.max(...ours.map((each) => each.anonymousMib)),
      ...(theirs.length > 0 && {
        'Python onnx.load': short(least(theirs)),
        'times ours': short(least(theirs) / least(ours)),
      }),
    }
  })
}

/** @returns {{first: number, best: number} | undefined} seconds; undefined where Python lacks onnx */
function loadInPython(python, path, name, value) {
  const { status, stdout, stderr } = spawnSync(
    python,
    ['-c', PYTHON_LOAD, path, name, String(PYTHON_TIMES)],
    {
      encoding: 'utf8',
    },
  )
  if (status !== 0) {
    if (stderr === null || stderr.includes('ModuleNotFoundError')) return undefined
    throw new Error(stderr)
  }
  const [first, best, theirs] = stdout.split(' ').map(Number)
  if (!Object.is(theirs, value)) throw new Error(`Python reads ${theirs} where tilework reads ${value}`)
  return { first, best }
}

async function measureSave(folder, { mib, initializers, rounds }) {
  const input = join(folder, 'initializers.onnx')
  const elements = writeInitializers(input, { bytes: mib * 1024 * 1024, count: initializers })
  const output = join(folder, 'saved.onnx')
  const name = initializerName(Math.floor(initializers / 2))
  const values = tensor(new Float32Array(elements).fill(1.5), { name })
  const best = await bestOfRounds(
    {
      loop: () => copyInBlocks(input, output),
      tilework: async () => {
        rmSync(output, { force: true })
        const file = await open(input)
        file.onnx.graph.setInitializer(name, values)
        await save(output, file)
        file.close()
      },
    },
    rounds,
  )
  if (statSync(output).size !== statSync(input).size) throw new Error('the saved model has another size')
  return [
    { case: 'read and write 1 MiB blocks', seconds: short(best.loop), 'ratio to the loop': 1 },
    {
      case: 'open, replace one, save',
      seconds: short(best.tilework),
      'ratio to the loop': short(best.loop / best.tilework),
    },
  ]
}

async function measureNodes(folder, { nodes, rounds, protobufjs }) {
  const path = join(folder, 'nodes.onnx')
  writeNodes(path, nodes)
  const candidates = {
    open: async () => {
      const file = await open(path)
      if (file.tensors.length !== 1) throw new Error('the model has one initializer')
      file.close()
    },
    'open, inputs and outputs of every node': async () => {
      const file = await open(path)
      let names = 0
      for (const { opType, inputs, outputs } of file.onnx.graph.nodes)
        names += inputs.length + outputs.length + (opType === '' ? 1 : 0)
      if (names !== 3 * nodes) throw new Error(`${names} names`)
      file.close()
    },
  }
  const library = await importFrom(protobufjs, 'protobufjs')
  if (library) {
    const types = onnxTypes(library)
    candidates['protobufjs, decode'] = () => {
      const model = types.lookupType('ModelProto').decode(readFileSync(path))
      if (model.graph.node.length !== nodes) throw new Error(`${model.graph.node.length} nodes`)
    }
  } else console.error(`skipped: ${protobufjs} has no protobufjs`)
  const best = await bestOfRounds(candidates, rounds)
  const decode = best['protobufjs, decode']
  const rows = Object.entries(best).map(([name, seconds]) => ({
    case: name,
    seconds: short(seconds),
    ...(decode && { 'times protobufjs': short(seconds / decode) }),
  }))
  return [...rows, { case: 'inspect --json, CPU', seconds: short(await inspectSeconds(path, rounds)) }]
}

/** CPU seconds of the command, user and system, including the start of Node. */
async function inspectSeconds(path, rounds) {
  const took = []
  for (let round = 0; round < rounds; round++) {
    const { stderr } = await execute('bash', [
      '-c',
      'TIMEFORMAT="%U %S"; time "$@" > /dev/null',
      'inspect',
      process.execPath,
      COMMAND,
      'inspect',
      path,
      '--json',
    ])
    const [user, system] = stderr.trim().split('\n').at(-1).split(' ').map(Number)
    took.push(user + system)
  }
  return Math.min(...took)
}

const short = (value) => Number(value.toPrecision(3))
