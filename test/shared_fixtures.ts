/**
 * Files of other projects, kept in `../shared/fixtures` beside the checkout. `test/fixtures/third_party.json` lists them, so
 * that tests which need them can be counted where they are missing.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const FOLDER = resolve(import.meta.dirname, '../../shared/fixtures')

interface ThirdPartyFile {
  /** Relative to the folder: `onnx/simple/test_shrink/model.onnx`. */
  readonly path: string
  readonly byteLength: number
  readonly sha256: string
}

const LIST = JSON.parse(readFileSync(join(import.meta.dirname, 'fixtures/third_party.json'), 'utf8')) as {
  readonly files: readonly ThirdPartyFile[]
}

/** Whether all listed files are there. */
export const hasThirdPartyFiles = LIST.files.every(({ path }) => existsSync(join(FOLDER, path)))

/** Options of a test or suite that reads third-party files: it is left out, and counted, where they are missing. */
export const THIRD_PARTY = { tags: ['third-party'] }

/** The listed files of a folder: `btf`, `onnx` or `tmfile`. */
export function thirdPartyFiles(folder: string): readonly ThirdPartyFile[] {
  return LIST.files.filter(({ path }) => path.startsWith(`${folder}/`))
}

/** Absolute path of a file, for example `btf/test_tensor.btf`. */
export function thirdPartyPath(path: string): string {
  return join(FOLDER, path)
}

export function thirdPartyBytes(path: string): Uint8Array {
  return new Uint8Array(readFileSync(thirdPartyPath(path)))
}
