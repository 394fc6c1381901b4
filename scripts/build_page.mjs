/**
 * Bundles the page of `tilework view` to `dist/view`: a document, a style sheet, the page and the worker that places the boxes of
 * a graph. `npm run build:lib` calls it. Its packages are development dependencies, because their code is in the bundles;
 * the source maps, which no server serves, name them for THIRD_PARTY_NOTICES.
 */
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { ROOT } from './toolchain.mjs'

const PAGE = join(ROOT, 'lib', 'view', 'page')

/** @param dist - the folder of the library */
export async function buildPage(dist) {
  const folder = join(dist, 'view')
  mkdirSync(folder, { recursive: true })
  await build({
    entryPoints: {
      page: join(PAGE, 'main.tsx'),
      graph_worker: join(PAGE, 'graph', 'graph_worker.ts'),
    },
    outdir: folder,
    bundle: true,
    format: 'esm',
    target: ['chrome111', 'firefox114', 'safari16.4'],
    minify: true,
    sourcemap: 'external',
    sourcesContent: false,
    legalComments: 'none',
    logLevel: 'error',
    tsconfig: join(PAGE, 'tsconfig.json'),
  })
  copyFileSync(join(PAGE, 'index.html'), join(folder, 'index.html'))
}
