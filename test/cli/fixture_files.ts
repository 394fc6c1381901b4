/** The two BTF files of TFRT's repository, where they lie beside the checkout. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('../../../shared/fixtures/btf', import.meta.url))

export const REAL_FILES = ['test_tensor.btf', 'matmul_test_f32.btf'].map((name) => `${FOLDER}/${name}`)
export const hasRealFiles = REAL_FILES.every((path) => existsSync(path))
if (!hasRealFiles) console.log(`skipped: no real BTF files in ${FOLDER}`)
