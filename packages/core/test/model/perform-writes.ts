import type { EventChoice, StepOf } from './script.ts'
import type { Known } from './model.ts'
import type { World, Writer } from './world.ts'

const laterHours = 1.25

export async function write(world: World, step: StepOf<'write'>): Promise<void> {
  const writer = world.writers[step.writer]
  if (writer === undefined) return
  world.tell(
    `writer ${step.writer + 1} ${writer.open ? 'writes' : 'begins a transaction and writes'} ${words(world, step.event)}`,
  )
  await begin(writer)
  await insert(world, writer, step.event)
}

export async function place(world: World, { event }: StepOf<'place'>): Promise<void> {
  const writer = world.writers.find(({ open }) => !open)
  if (writer === undefined) return
  world.tell(`somebody writes ${words(world, event)} and commits`)
  await begin(writer)
  await insert(world, writer, event)
  await end(world, writer, 'commit')
}

export async function endWrite(world: World, step: StepOf<'commit' | 'roll back'>): Promise<void> {
  const writer = world.writers[step.writer]
  if (writer?.open !== true) return
  world.tell(`writer ${step.writer + 1} ${step.do === 'commit' ? 'commits' : 'rolls back'}`)
  await end(world, writer, step.do)
}

async function begin(writer: Writer): Promise<void> {
  if (!writer.open) await writer.client.query('begin')
  writer.open = true
}

async function insert(world: World, writer: Writer, { topic, key, ordering, later }: EventChoice): Promise<void> {
  const number = world.model.events.length + 1
  const eventId = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
  const { id } = await world.theatre.outbox.enqueue(writer.client, {
    topic,
    key,
    eventId,
    payload: number,
    ...(ordering === undefined ? {} : { ordering }),
    ...(later ? { delayMs: laterHours * 3_600_000 } : {}),
  })
  const known = world.model.written(
    { topic, key, ordering, delayHours: later ? laterHours : undefined },
    { eventId, id: BigInt(id) },
    writer.written,
  )
  writer.written.push(known)
}

export async function end(world: World, writer: Writer, how: 'commit' | 'roll back'): Promise<void> {
  await writer.client.query(how === 'commit' ? 'commit' : 'rollback')
  const written: readonly Known[] = writer.written.splice(0)
  writer.open = false
  if (how === 'commit') world.model.committed(written)
  else world.model.rolledBack(written)
}

function words({ model }: World, { topic, key, ordering, later }: EventChoice): string {
  const order =
    ordering === undefined
      ? key === null
        ? 'no key'
        : `key ${key}`
      : ordering === 'none'
        ? 'outside any order'
        : 'in total order'
  return `event ${model.events.length + 1} (topic ${topic}, ${order}${later ? `, for ${laterHours} hours later` : ''})`
}
