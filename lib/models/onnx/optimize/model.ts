import type { EditableModel } from '../edit/function_edits.js'
import type { InferableModel } from '../infer/infer.js'

/** What passes use of `OnnxModel`, whose file imports them. */
export type OptimizedModel = EditableModel & InferableModel
