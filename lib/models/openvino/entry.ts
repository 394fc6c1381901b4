/** OpenVINO IR for the registry. A file of weights (`.bin`) has no header; the `.xml` file beside it is what is opened. */
import type { ModelFormatEntry } from '../../formats/format.js'
import { detectIr } from '../../formats/openvino/detect.js'
import type { OpenvinoModel } from './model.js'

/** The same as `FORMAT_NAME` of the schema, which is loaded with the format. */
const NAME = 'openvino'

export const openvinoEntry = {
  name: NAME,
  extensions: ['.xml'],
  isReadOnly: true,
  writeOptions: {},
  modelProperty: 'openvino',
  namesFiles: true,
  detect: detectIr,
  load: async () => (await import('./index.js')).openvino,
} as const satisfies ModelFormatEntry<OpenvinoModel, Record<never, never>>
