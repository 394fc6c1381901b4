import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { hasThirdPartyFiles } from './test/shared_fixtures.js'

/** Pools that the suite must pass in: the addon keeps its state per environment, so threads are tested as well. */
const POOLS = ['forks', 'threads'] as const

/**
 * Left out by `npm run test:quick`: mutations, properties, pairs of all layouts and child processes. Together they take
 * three quarters of the suite's time. Everything else ends within 90 s on two cores.
 */
const SLOW = [
  'test/attacks/**',
  'test/cli/{inspect_many,killed,main}.test.ts',
  'test/formats/npy/npz.test.ts',
  'test/formats/tmfile/{operators,real_files}.test.ts',
  'test/layout/{draw,properties}.test.ts',
  'test/models/onnx/{compose/extract,document/wrong_input,edit/graph_passes}.test.ts',
  'test/models/tmfile/edit/edit.test.ts',
  'test/native/{held_plans,output_file}.test.ts',
  'test/package/{import_rules,public_types}.test.ts',
  'test/pipeline/{plan_pairs,plan_vectors,streaming}.test.ts',
  'test/tensor/{cast,tensors}.test.ts',
]

/** These take more than half a minute: begun last, one of them would run alone at the end. */
const LONGEST = [
  'test/attacks/memory_bound.test.ts',
  'test/docs/programs.test.ts',
  'test/public_arguments.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number =>
      LONGEST.some((path) => moduleId.endsWith(path)) ? 0 : 1
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other))
  }
}

const wanted = process.env.TILEWORK_POOL ?? 'forks'
const pool = POOLS.find((name) => name === wanted)
if (pool === undefined) throw new Error(`TILEWORK_POOL is "${wanted}"; expected one of: ${POOLS.join(', ')}`)

export default defineConfig(({ mode }) => ({
  test: {
    include: ['test/**/*.test.ts'],
    // The page needs a browser: npm run test:view.
    exclude: [
      ...configDefaults.exclude,
      ...(mode === 'view' ? [] : ['test/view/page/**']),
      ...(mode === 'quick' ? SLOW : []),
    ],
    pool,
    sequence: { sequencer: LongestFirst },
    // By default one processor is left free: on two, the suite would take twice as long.
    maxWorkers: '100%',
    setupFiles: process.platform === 'win32' ? ['test/windows_setup.ts'] : [],
    reporters: ['default', './test/left_out_reporter.ts'],
    tags: [
      {
        name: 'third-party',
        description: 'reads files of other projects, which are not in the repository',
        skip: !hasThirdPartyFiles,
      },
    ],
    // Property tests, mutations and child processes are slow on a small machine under load.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
}))
