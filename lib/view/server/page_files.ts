/** The files of the page in the package: a fixed list, read once. Requests cannot name a path. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TileworkError } from '../../errors.js'
import { packageRoot } from '../../package_root.js'
import type { Answer } from './answer.js'

const TYPES: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'graph_worker.js': 'text/javascript; charset=utf-8',
}

/** Responses by path. @throws TileworkError ERR_IO where the package lacks the page */
export async function loadPage(): Promise<ReadonlyMap<string, Answer>> {
  const folder = join(packageRoot() ?? '.', 'dist', 'view')
  const files = Object.entries(TYPES).map(async ([name, type]): Promise<[string, Answer]> => {
    try {
      return [name === 'index.html' ? '/' : `/${name}`, { type, body: await readFile(join(folder, name)) }]
    } catch (cause) {
      const message = `The page of tilework view cannot be read from ${folder}; "npm run build:lib" builds it.`
      throw new TileworkError('ERR_IO', message, { path: folder, cause })
    }
  })
  return new Map(await Promise.all(files))
}
