/** The operator set that a compression needs: refused where the model has an earlier one, or raised where the caller allows it. */
import { TileworkError } from '../../errors.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { convertOpset } from '../onnx/opset/convert.js'
import type { CompressReport } from './report.js'

export interface OpsetOptions {
  /**
   * Converts a model of an earlier operator set to the one that the call needs, as `convertOpset` does, before anything else; the
   * report has both versions. Default false: ERR_UNSUPPORTED.
   */
  readonly raiseOpset?: boolean
}

/** What `requireOpset` did. */
export type RaisedOpset = Pick<CompressReport, 'opset'>

/**
 * @param what - what needs the operator set, for the error
 * @throws TileworkError ERR_UNSUPPORTED for an earlier operator set, or for nodes that cannot be converted; nothing is changed then
 */
export function requireOpset(
  model: OnnxModel,
  needed: number,
  what: string,
  { raiseOpset }: OpsetOptions,
): RaisedOpset {
  const from = Number(model.opsetImports.get('') ?? 0)
  if (from >= needed) return {}
  if (raiseOpset) {
    convertOpset(model, needed)
    return { opset: { from, to: needed } }
  }
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `the model has operator set ${from}; ${what} needs ${needed}, to which convertOpset or the option raiseOpset (--opset auto) converts it.`,
  )
}
