/**
 * The names that a pickle may use: those that torch's safe loader allows in 2.14, as a table of what each means here. Nothing is
 * looked up anywhere and nothing is imported. Source: `torch/_weights_only_unpickler.py`.
 */
import { TORCH_TYPES, TYPED_CLASSES } from '../torch_types.js'
import { type GlobalKind, PickleGlobal } from './values.js'

const REBUILD = [
  '_rebuild_tensor',
  '_rebuild_tensor_v2',
  '_rebuild_tensor_v3',
  '_rebuild_parameter',
  '_rebuild_parameter_with_state',
  '_rebuild_qtensor',
  '_rebuild_sparse_tensor',
  '_rebuild_sparse_csr_tensor',
  '_rebuild_meta_tensor_no_storage',
  '_rebuild_nested_tensor',
  '_rebuild_device_tensor_from_cpu_tensor',
  '_rebuild_device_tensor_from_numpy',
  '_rebuild_wrapper_subclass',
]

const SCHEMES = [
  'per_tensor_affine',
  'per_tensor_symmetric',
  'per_channel_affine',
  'per_channel_symmetric',
  'per_channel_affine_float_qparams',
]

const ALLOWED: ReadonlyMap<string, GlobalKind> = new Map<string, GlobalKind>([
  ['collections.OrderedDict', 'dict'],
  ['collections.Counter', 'counter'],
  ['torch.Size', 'size'],
  ['torch.device', 'device'],
  ['_codecs.encode', 'encode'],
  // torch refuses `bytes`; without arguments, as protocol 2 writes an empty text, it is harmless.
  ['builtins.bytes', 'bytes'],
  ['builtins.bytearray', 'bytearray'],
  ['builtins.set', 'set'],
  ['builtins.complex', 'complex'],
  ['torch.Tensor', 'class'],
  ['torch.nn.parameter.Parameter', 'class'],
  ['torch.serialization._get_layout', 'layout'],
  ['torch._tensor._rebuild_from_type_v2', 'rebuild'],
  ['torch.storage.UntypedStorage', 'storage'],
  // torch allows the name; no storage in a file is of this class.
  ['torch.storage.TypedStorage', 'class'],
  ...REBUILD.map((name): [string, GlobalKind] => [`torch._utils.${name}`, 'rebuild']),
  ...SCHEMES.map((name): [string, GlobalKind] => [`torch.${name}`, 'scheme']),
  ...[...TORCH_TYPES.keys()].map((name): [string, GlobalKind] => [`torch.${name}`, 'dtype']),
  ...TYPED_CLASSES.flatMap((name): [string, GlobalKind][] => [
    [`torch.${name}Storage`, 'storage'],
    [`torch.cuda.${name}Storage`, 'storage'],
    ...['torch', 'torch.cuda', 'torch.sparse', 'torch.cuda.sparse'].map((module): [string, GlobalKind] => [
      `${module}.${name}Tensor`,
      'class',
    ]),
  ]),
  ['torch.UntypedStorage', 'storage'],
  ['torch.cuda.UntypedStorage', 'storage'],
])

/** Names of modules in Python 2, which protocol 2 writes. */
const PYTHON_3_MODULES: ReadonlyMap<string, string> = new Map([
  ['__builtin__', 'builtins'],
  ['copy_reg', 'copyreg'],
])

/** The full name in Python 3. */
export function fullName(module: string, name: string): string {
  return `${PYTHON_3_MODULES.get(module) ?? module}.${name}`
}

/** Classes of a TorchScript archive are below this module. */
const SCRIPT_MODULE = '__torch__.'
/** Functions that restore the types of lists in TorchScript archives: each returns its first argument. */
const SCRIPT_FUNCTION =
  /^torch\.jit\._pickle\.(build_intlist|build_tensorlist|build_doublelist|build_boollist|restore_type_tag)$/

const made = new Map<string, PickleGlobal>()

/**
 * @param isScript - whether the classes of TorchScript are allowed too
 * @returns undefined for a name that is not allowed
 */
export function allowedGlobal(name: string, isScript: boolean): PickleGlobal | undefined {
  const kind = ALLOWED.get(name)
  if (kind === undefined) return isScript ? scriptGlobal(name) : undefined
  const known = made.get(name)
  if (known) return known
  const global = new PickleGlobal(name, kind)
  made.set(name, global)
  return global
}

function scriptGlobal(name: string): PickleGlobal | undefined {
  if (name.startsWith(SCRIPT_MODULE)) return new PickleGlobal(name, 'script-class')
  return SCRIPT_FUNCTION.test(name) ? new PickleGlobal(name, 'script-function') : undefined
}
