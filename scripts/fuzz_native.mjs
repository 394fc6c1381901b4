/**
 * `npm run fuzz -- --native --minutes N [--target NAME] [--seed N] [--runs N] [--keep]`: builds the libFuzzer targets of
 * `fuzz/native` and runs them; `--plain --runs N` runs changed copies of the kept cases in the build that is shipped. See
 * fuzz/README.md.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildNativeTests } from '../test/programs/native_tests.mjs'
import { buildOrExit } from './build_progress.mjs'
import { jobs, ROOT, requireTools, runOrExit } from './toolchain.mjs'

/** Longest case in bytes. More only makes the descriptions slower to mutate. */
const TARGETS = { dlpack: 256, join: 256, plan: 256, tiling: 256, wire: 1024 }
const BUILD = join(ROOT, 'build-fuzz')
/** Edges alone find cases two to four times as fast as edges with counters. */
const FEATURES = ['-entropic=0', '-use_counters=0']

const { values } = parseArgs({
  options: {
    native: { type: 'boolean' },
    minutes: { type: 'string', default: '1' },
    target: { type: 'string' },
    seed: { type: 'string' },
    /** Cases of each target, instead of minutes. */
    runs: { type: 'string' },
    /** Replaces the kept corpus by the smallest set of cases that reaches the same edges. */
    keep: { type: 'boolean', default: false },
    /** Without libFuzzer, coverage and sanitizers. */
    plain: { type: 'boolean', default: false },
  },
})
const names = values.target === undefined ? Object.keys(TARGETS) : values.target.split(',')
const unknown = names.find((name) => !(name in TARGETS))
if (unknown !== undefined)
  throw new Error(`unknown target "${unknown}"; expected ${Object.keys(TARGETS).join(', ')}`)
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
if (values.plain) process.exit(await runPlain())

const clang = findClang()
if (clang === undefined) {
  console.log('native fuzzers: skipped, no clang++ with libFuzzer was found')
  process.exit(0)
}
requireTools()
const options = [
  '-DTILEWORK_BUILD_FUZZ=ON',
  `-DCMAKE_CXX_COMPILER=${clang}`,
  '-DCMAKE_BUILD_TYPE=RelWithDebInfo',
  '-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1',
]
runOrExit('Configuring the fuzz targets', 'cmake', ['-S', ROOT, '-B', BUILD, ...options])
const build = ['--build', BUILD, '--parallel', String(jobs()), '--target', 'fuzz_targets']
await buildOrExit('Building the fuzz targets', 'cmake', build)

const findings = join(ROOT, 'fuzz', 'findings')
mkdirSync(findings, { recursive: true })
let failed = false
for (const name of names) {
  const kept = join(ROOT, 'fuzz', 'corpus', 'native', name)
  const found = join(BUILD, 'corpus', name)
  for (const folder of [kept, found]) mkdirSync(folder, { recursive: true })
  const amount =
    values.runs === undefined
      ? `-max_total_time=${Math.round((60 * Number(values.minutes)) / names.length)}`
      : `-runs=${values.runs}`
  const artifacts = `-artifact_prefix=${join(findings, `native-${name}-`)}`
  const { status, log } = fuzzer(name, [
    ...[`-seed=${seed}`, `-max_len=${TARGETS[name]}`, amount, artifacts, ...FEATURES],
    ...[found, kept],
  ])
  console.log(`${name}: ${summary(log)}`)
  if (status !== 0) {
    failed = true
    console.log(log.split('\n').slice(-60).join('\n'))
  } else if (values.keep) {
    const all = `${kept}-all`
    rmSync(all, { recursive: true, force: true })
    spawnSync('mv', [kept, all])
    mkdirSync(kept)
    fuzzer(name, ['-set_cover_merge=1', '-use_counters=0', kept, all, found])
    rmSync(all, { recursive: true })
  }
}
process.exit(failed ? 1 : 0)

/** @returns the exit code */
async function runPlain() {
  const targets = names.map((name) => `fuzz_${name}_corpus`)
  const folder = await buildNativeTests('plain', { targets })
  const failed = names.filter((name, index) => {
    const kept = join(ROOT, 'fuzz', 'corpus', 'native', name)
    const args = ['--cases', values.runs ?? '1000000', '--seed', String(seed), kept]
    const { status, stderr } = spawnSync(join(folder, 'fuzz', 'native', targets[index]), args, {
      stdio: ['ignore', 'inherit', 'pipe'],
      encoding: 'utf8',
    })
    if (status !== 0) console.log(`${name}: ${stderr.split('\n').slice(-3).join('\n')}`)
    return status !== 0
  })
  return failed.length > 0 ? 1 : 0
}

/** Runs a target to its end. */
function fuzzer(name, args) {
  const path = join(BUILD, `${name}.log`)
  const output = openSync(path, 'w')
  const { status } = spawnSync(join(BUILD, 'fuzz', 'native', `fuzz_${name}`), args, {
    cwd: BUILD,
    env: { ...process.env, ASAN_OPTIONS: 'malloc_context_size=2:quarantine_size_mb=16' },
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  return { status, log: readFileSync(path, 'utf8') }
}

/** Cases, edges, and the case that reached the last new edge. */
function summary(log) {
  let edges = 0
  let last = 0
  for (const [, number, covered] of log.matchAll(/^#(\d+)\s.*\bcov: (\d+)/gm)) {
    if (Number(covered) > edges) last = Number(number)
    edges = Math.max(edges, Number(covered))
  }
  const cases = /^Done (\d+) runs/m.exec(log)?.[1] ?? 'stopped, see fuzz/findings: 0'
  return `${cases} cases from seed ${seed}, ${edges} edges, the last new one at case ${last}`
}

/** A compiler that links libFuzzer: `$CXX` or the newest clang++. */
function findClang() {
  const versions = ['clang++', ...Array.from({ length: 10 }, (_, i) => `clang++-${23 - i}`)]
  const candidates = [process.env.CXX, ...versions].filter((name) => name?.includes('clang'))
  return candidates.find((name) => {
    const args = ['-fsanitize=fuzzer', '-x', 'c++', '-', '-o', '/dev/null']
    const source = 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }'
    return spawnSync(name, args, { input: source }).status === 0
  })
}
