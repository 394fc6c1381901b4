/** PyTorch checkpoints for the registry. */
import type { FormatEntry } from '../format.js'
import { detect, isDamaged } from './detect.js'
import { FORMAT_NAME, INDEX_EXTENSION } from './schema.js'

export const pytorchEntry = {
  name: FORMAT_NAME,
  // `.bin` is any file, so the content alone says that one is of torch.
  extensions: ['.pt', '.pth', '.ckpt', INDEX_EXTENSION],
  isReadOnly: true,
  writeOptions: {},
  detailsProperty: 'pytorch',
  detect,
  isDamaged,
  load: async () => (await import('./index.js')).pytorch,
} as const satisfies FormatEntry<Record<never, never>>
