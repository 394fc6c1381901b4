import type { OnnxModel } from '../document/model.js'
import { standardDomain } from '../document/node.js'

/** Imports operator sets of domains of which the model has none. */
export function importMissingOpsets(
  model: OnnxModel,
  opsets: Iterable<readonly [domain: string, version: number | bigint]>,
): void {
  for (const [domain, version] of opsets)
    if (!model.opsetImports.has(standardDomain(domain))) model.setOpsetImport(domain, version)
}
