import { defineConfig } from 'vitest/config'
import { hasThirdPartyFiles } from './test/shared_fixtures.js'

/** Pools that the suite must pass in: the addon keeps its state per environment, so threads are tested as well. */
const POOLS = ['forks', 'threads'] as const

const wanted = process.env.TILEWORK_POOL ?? 'forks'
const pool = POOLS.find((name) => name === wanted)
if (pool === undefined) throw new Error(`TILEWORK_POOL is "${wanted}"; it may be ${POOLS.join(' or ')}.`)

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool,
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
})
