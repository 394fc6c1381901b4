import type { InferableModel } from '../infer/infer.js'
import type { EditableModel } from '../model/function_edits.js'

/** What passes use of `OnnxModel`, whose file imports them. */
export type OptimizedModel = EditableModel & InferableModel
