/** What nodes are annotated with for several devices: pipeline stages, and how values are split. Facts: onnx.proto, IR version 11. */
import { checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkInt64, checkList, checkText } from '../../../formats/onnx/protobuf/field_input.js'
import { Message } from '../../../formats/onnx/protobuf/message.js'
import { valueText } from '../../../value_text.js'
import type { Dimension, NodeDeviceConfiguration, ShardedDimension, Sharding } from './types.js'

/** Devices that a model is annotated for. */
export interface DeviceConfiguration {
  readonly name: string
  readonly deviceCount: number
  readonly devices: readonly string[]
}

export function deviceConfigurationsOf(model: Message): readonly DeviceConfiguration[] {
  return model.messages('configuration').map((message) => ({
    name: message.text('name'),
    deviceCount: Number(message.int('num_devices') ?? 0),
    devices: message.texts('device'),
  }))
}

/** @throws TileworkError ERR_ARGUMENT */
export function addDeviceConfiguration(model: Message, added: Partial<DeviceConfiguration>): void {
  checkOptions(added, 'addDeviceConfiguration', ['name', 'deviceCount', 'devices'])
  const given = readInput('The device configuration', () => ({ ...added }))
  const { devices = [] } = given
  const texts = Array.from(checkList('The devices of a configuration', devices), (each) =>
    checkText('The name of a device', each),
  )
  const { deviceCount = texts.length } = given
  const name = checkText('The name of a device configuration', given.name)
  if (name === '' || deviceConfigurationsOf(model).some((each) => each.name === name))
    throw wrong(`The name ${valueText(name)} is empty or that of another device configuration`)
  if (!isWithin(deviceCount, 1, MAX_INT32) || (texts.length > 0 && texts.length !== deviceCount)) {
    throw wrong(
      `The device configuration has ${valueText(deviceCount)} devices and ${texts.length} names of devices; it needs one device, and one name for each or none`,
    )
  }
  const message = model.insert('configuration')
  message.setText('name', name)
  message.setInt('num_devices', deviceCount)
  if (texts.length > 0) message.setTexts('device', texts)
}

const MAX_INT32 = 2 ** 31 - 1

export function nodeDeviceConfigurations(node: Message): readonly NodeDeviceConfiguration[] {
  return node.messages('device_configurations').map((message) => {
    const stage = message.int('pipeline_stage')
    const shardings = message.messages('sharding_spec').map(readSharding)
    return {
      configuration: message.text('configuration_id'),
      ...(stage !== undefined && { pipelineStage: Number(stage) }),
      ...(shardings.length > 0 && { shardings }),
    }
  })
}

function readSharding(message: Message): Sharding {
  const devices = message.ints('device').map(Number)
  const groups = message.messages('index_to_device_group_map')
  const dims = message.messages('sharded_dim').map(readDimension)
  return {
    value: message.text('tensor_name'),
    ...(devices.length > 0 && { devices }),
    ...(groups.length > 0 && {
      deviceGroups: new Map(
        groups.map((each) => [Number(each.int('key') ?? 0), each.ints('value').map(Number)]),
      ),
    }),
    ...(dims.length > 0 && { dims }),
  }
}

function readDimension(message: Message): ShardedDimension {
  const parts = message.messages('simple_sharding').map((each) => ({
    extent: each.has('dim_param') ? each.text('dim_param') : (each.int('dim_value') ?? null),
    shards: Number(each.int('num_shards') ?? 0),
  }))
  return { axis: Number(message.int('axis') ?? 0), parts }
}

/**
 * Replaces the annotations of a node. Nothing is changed where one of them is refused.
 *
 * @throws TileworkError ERR_ARGUMENT
 */
export function setNodeDeviceConfigurations(node: Message, given: readonly NodeDeviceConfiguration[]): void {
  const configurations = configurationsAround(node)
  // Not the list's own `map`: the caller's array may have another.
  const made = Array.from(checkList('The device configurations of a node', given), (each) =>
    written(each as NodeDeviceConfiguration, node, configurations),
  )
  node.clear('device_configurations')
  for (const message of made) node.adopt('device_configurations', message)
}

/** Those of the model; undefined for a node that is in no model. */
function configurationsAround(node: Message): readonly DeviceConfiguration[] | undefined {
  let outermost = node
  while (outermost.parent) outermost = outermost.parent
  return outermost.type === 'ModelProto' ? deviceConfigurationsOf(outermost) : undefined
}

function written(
  given: NodeDeviceConfiguration,
  node: Message,
  configurations: readonly DeviceConfiguration[] | undefined,
): Message {
  checkOptions(given, 'a device configuration of a node', ['configuration', 'pipelineStage', 'shardings'])
  const {
    configuration,
    pipelineStage,
    shardings = [],
  } = readInput('The device configuration', () => ({
    ...given,
  }))
  const name = checkText('The name of a device configuration', configuration)
  const known = configurations?.find((each) => each.name === name)
  if (name === '' || (configurations && !known))
    throw wrong(`The model has no device configuration ${valueText(name)}; add it to the model first`)
  const message = new Message('NodeDeviceConfigurationProto')
  message.setText('configuration_id', name)
  for (const each of checkList('The shardings of a node', shardings))
    message.adopt('sharding_spec', writtenSharding(each as Sharding, node, known?.deviceCount))
  if (pipelineStage !== undefined) {
    if (!isWithin(pipelineStage, 0, MAX_INT32))
      throw wrong(`pipelineStage is ${valueText(pipelineStage)}; it must be an integer from 0`)
    message.setInt('pipeline_stage', pipelineStage)
  }
  return message
}

function writtenSharding(given: Sharding, node: Message, deviceCount = MAX_INT32): Message {
  checkOptions(given, 'a sharding', ['value', 'devices', 'deviceGroups', 'dims'])
  const { value, devices = [], deviceGroups, dims = [] } = readInput('The sharding', () => ({ ...given }))
  const name = checkText('The value of a sharding', value)
  if (name === '' || ![...node.texts('input'), ...node.texts('output')].includes(name))
    throw wrong(`The sharding is of ${valueText(name)}, which is neither an input nor an output of the node`)
  const groups = readInput('The deviceGroups of a sharding', () => [...(deviceGroups ?? [])])
  const message = new Message('ShardingSpecProto')
  message.setText('tensor_name', name)
  const keys = groups.map(([key]) => key)
  const checked = checkDevices(devices, name, deviceCount, keys)
  if (checked.length > 0) message.setInts('device', checked)
  for (const [key, members] of groups) {
    const entry = message.insert('index_to_device_group_map')
    entry.setInt('key', key)
    entry.setInts('value', checkDevices(members, name, deviceCount, []))
  }
  for (const each of checkList('The dims of a sharding', dims))
    message.adopt('sharded_dim', writtenDimension(each as ShardedDimension))
  return message
}

/** Each is the index of a device of the configuration, or the key of a group. */
function checkDevices(
  devices: readonly number[],
  value: string,
  deviceCount: number,
  keys: readonly number[],
): readonly number[] {
  const list = checkList('The devices of a sharding', devices) as readonly number[]
  for (const index of list) {
    if (isWithin(index, 0, deviceCount - 1) || keys.includes(index)) continue
    throw wrong(
      `A sharding of ${valueText(value)} names the device ${valueText(index)}; the configuration has ${deviceCount}`,
    )
  }
  return list
}

function writtenDimension(given: ShardedDimension): Message {
  checkOptions(given, 'a dimension of a sharding', ['axis', 'parts'])
  const { axis, parts } = readInput('The dimension of a sharding', () => ({ ...given }))
  const message = new Message('ShardedDimProto')
  message.setInt('axis', checkInt64('The axis of a sharding', axis))
  for (const part of checkList('The parts of a dimension', parts)) {
    const { extent, shards } = readInput('The part of a dimension', () => ({
      ...(part as { readonly extent: Dimension; readonly shards: number }),
    }))
    if (!isWithin(shards, 1, Number.MAX_SAFE_INTEGER))
      throw wrong(`A dimension is split into ${valueText(shards)} shards; it must be an integer from 1`)
    const entry = message.insert('simple_sharding')
    if (typeof extent === 'string') entry.setText('dim_param', extent)
    else if (extent !== null) entry.setInt('dim_value', checkInt64('The extent of a sharding', extent))
    entry.setInt('num_shards', shards)
  }
  return message
}

/** Of the message of a model: nodes of all graphs and functions no longer refer to a configuration. */
export function forgetDeviceConfiguration(node: Message, name: string): void {
  if (node.has('device_configurations'))
    node.filter('device_configurations', (each) => (each as Message).text('configuration_id') !== name)
}

function isWithin(value: unknown, lowest: number, highest: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= lowest && (value as number) <= highest
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`)
}
