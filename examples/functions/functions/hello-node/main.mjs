// A function in Node: checks that a job call is genuine, and keeps its payload once, under the job's id.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

const DATA = process.env.EXAMPLE_DATA ?? 'data'
const SECRET = process.env.TREADLE_FUNCTION_SECRET
const JOB = /^\/jobs\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** Whether the service signed this call: only it and this function know the secret. */
function genuine(id, body, signature = '') {
  const right = Buffer.from('sha256=' + createHmac('sha256', SECRET).update(`${id}.`).update(body).digest('hex'))
  const given = Buffer.from(signature)
  return given.length === right.length && timingSafeEqual(given, right)
}

/**
 * Keep the payload unless this job has done so: true the first time.
 *
 * A job may be called twice, since an answer can get lost. The link is made whole or not at all, and only once: a crash of
 * this program before it leaves nothing done, and after it the job is done.
 */
function keep(id, body) {
  mkdirSync(DATA, { recursive: true })
  const draft = join(DATA, `.${randomBytes(8).toString('hex')}`)
  const file = openSync(draft, 'wx')
  writeSync(file, body)
  fsyncSync(file)
  closeSync(file)
  try {
    linkSync(draft, join(DATA, `${id}.json`))
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    unlinkSync(draft)
  }
}

function answer(response, status, value) {
  response.statusCode = status
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(value))
}

const server = createServer(async (request, response) => {
  if (!request.url.startsWith('/jobs/')) return response.end('Hello from Node\n')
  try {
    const id = JOB.exec(request.url)?.[1]
    if (!id) return answer(response, 404, { error: 'a job is called at /jobs/ID' })
    const parts = []
    for await (const part of request) parts.push(part)
    const body = Buffer.concat(parts)
    if (!genuine(id, body, request.headers['x-treadle-signature'])) {
      return answer(response, 401, { error: 'the signature is wrong' })
    }
    answer(response, 200, { job: id, first: keep(id, body) })
  } catch (error) {
    console.error(error)
    if (!response.headersSent) answer(response, 500, { error: 'it went wrong' })
  }
})
server.listen(Number(process.env.PORT), '127.0.0.1')
process.on('SIGTERM', () => server.close()) // calls under way are finished, then Node ends
