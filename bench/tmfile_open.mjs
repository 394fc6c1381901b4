/**
 * Opens a small tmfile and lists its tensors, compared with `create_graph` of Tengine, which reads the file, checks little and creates
 * its own graph. Both run in a process of their own, a first time and warm; the file stays in the page cache.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fail } from '../scripts/toolchain.mjs'
import { report } from './rounds.mjs'

const ENGINE_PROGRAM = `
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "api/c_api.h"
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}
int main(int count, char **args) {
  double first = 0, best = 1e9;
  init_tengine();
  for (int round = 0; round < atoi(args[2]); round++) {
    double start = now();
    graph_t graph = create_graph(NULL, "tengine", args[1]);
    double time = now() - start;
    if (!graph) return 3;
    if (round == 0) first = time;
    if (time < best) best = time;
    destroy_graph(graph);
  }
  printf("{\\"first\\": %f, \\"best\\": %f}", first, best);
  fflush(stdout);
  _Exit(0);
}
`

const OWN_PROGRAM = `
import { open } from ${JSON.stringify(new URL('../dist/index.js', import.meta.url).href)}
const [path, rounds] = process.argv.slice(1)
const times = []
for (let round = 0; round < Number(rounds); round += 1) {
  const start = performance.now()
  const file = await open(path)
  let listed = 0
  for (const { name, shape } of file.tensors) listed += name.length + shape.length
  times.push(performance.now() - start)
  file.close()
}
console.log(JSON.stringify({ first: times[0], best: Math.min(...times) }))
`

export function addTmfileOpen(program) {
  program
    .command('tmfile-open <file>')
    .description('opening and listing a small model, compared with create_graph of Tengine')
    .requiredOption('--tengine <path>', 'build folder of the engine')
    .requiredOption('--source <path>', 'checkout of the engine')
    .option('--rounds <n>', 'number of rounds in each process; the best counts', Number, 300)
    .option('--json', 'print JSON')
    .action(measure)
}

function measure(file, { tengine, source, rounds, json }) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-bench-'))
  try {
    const engine = buildEngineProgram(folder, tengine, source)
    const args = [file, String(rounds)]
    // Interleaved, so that both meet the same machine.
    const engines = [0, 1, 2].map(() => run(engine, args))
    const own = [0, 1, 2].map(() =>
      run(process.execPath, ['--input-type=module', '-e', OWN_PROGRAM, ...args]),
    )
    const least = (runs, what) => Math.min(...runs.map((each) => each[what]))
    const rows = ['first', 'best'].map((what) => ({
      case: what === 'first' ? 'first open of a process' : 'warm',
      'create_graph, ms': round(least(engines, what)),
      'open and list, ms': round(least(own, what)),
      'times as long': round(least(own, what) / least(engines, what)),
    }))
    report(rows, { json })
    if (!json) console.log(`File of ${round(statSync(file).size / 2 ** 20)} MiB.`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function buildEngineProgram(folder, build, source) {
  const [code, target] = [join(folder, 'load.c'), join(folder, 'load')]
  writeFileSync(code, ENGINE_PROGRAM)
  const library = join(build, 'source')
  const flags = ['-O2', '-std=gnu99', '-I', join(source, 'source'), '-I', library, code, '-o', target]
  const links = ['-L', library, '-ltengine-lite', '-lm', `-Wl,-rpath,${library}`]
  const { status, stderr } = spawnSync('gcc', [...flags, ...links], { encoding: 'utf8' })
  if (status !== 0) fail(`The program of the engine could not be built: ${stderr}`)
  return target
}

function run(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) fail(`${program} ended with ${status}: ${stderr.slice(-500)}`)
  return JSON.parse(stdout)
}

const round = (value) => Math.round(1000 * value) / 1000
