/* node_oracle.js PROGRAM PAGE - the reader of src/http beside the server of Node's http module: the
 * messages that PROGRAM (test_http_oracle) draws, and what it takes of them. Each difference is of a
 * class with a row in PAGE (docs/http-oracle.md). Prints TAP. */
'use strict'
const { execFileSync } = require('child_process')
const fs = require('fs')
const http = require('http')
const { Duplex } = require('stream')

const page = fs.readFileSync(process.argv[3], 'utf8')
const unexplained = new Map()
let differs = 0
let first = ''

/* A connection without a socket: what the server writes is thrown away. */
class Wire extends Duplex {
  _read() {}
  _write(_bytes, _encoding, done) { done() }
  setTimeout() { return this }
  setNoDelay() { return this }
  setKeepAlive() { return this }
  ref() { return this }
  unref() { return this }
  destroySoon() { this.destroy() }
}

function read(message) {
  return new Promise((resolve) => {
    const taken = []
    let why = ''
    const wire = new Wire()
    const take = (request, response) => {
      const body = []
      request.on('data', (bytes) => body.push(bytes))
      request.on('end', () => {
        taken.push({
          method: request.method,
          url: request.url,
          body: Buffer.concat(body).toString('latin1'),
          fields: request.rawHeaders.length / 2
        })
        response.end()
      })
    }
    const server = http.createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 },
      take)
    server.on('checkContinue', take)
    server.on('checkExpectation', (_request, response) => {
      why = why || 'Expect'
      response.writeHead(417, { Connection: 'close' })
      response.end()
    })
    server.on('connect', (_request, socket) => { why = why || 'CONNECT'; socket.destroy() })
    /* The connection is left open: the requests before it have their end in another turn. */
    server.on('clientError', (error) => { why = why || error.code || String(error) })
    wire.on('error', () => {})
    server.emit('connection', wire)
    wire.push(message)
    /* Pipelined requests are read a turn each. */
    let turns = 8
    const look = () => {
      if (turns-- > 0 && !wire.destroyed) return setImmediate(look)
      wire.destroy()
      resolve({ taken, why })
    }
    setImmediate(look)
  })
}

const text = (hex) => Buffer.from(hex, 'hex').toString('latin1')

/* Node's parser is llhttp, so what explains a difference to that explains it here. */
function expectRow(who, why, message) {
  if (!who.some((one) => page.includes(`| ${one} | ${why} |`))) {
    unexplained.set(`| ${who[0]} | ${why} |`, message)
  }
}

function compare(message, ours, node) {
  const both = Math.min(ours.taken.length, node.taken.length)
  for (let i = 0; i < both; i++) {
    const a = ours.taken[i]
    const b = node.taken[i]
    /* Of an absolute form ours gives the path. */
    const url = b.url === a.url || (b.url.startsWith('http') && b.url.endsWith(a.url))
    if (a.method === b.method && url && a.body === b.body && a.fields === b.fields) continue
    differs++
    first = first || JSON.stringify({ message, i, a, b })
    return
  }
  if (ours.taken.length < node.taken.length) {
    expectRow(['Node', 'llhttp'], ours.why || (ours.over ? 'after the close' : 'it waits'), message)
  } else if (ours.taken.length > node.taken.length) {
    expectRow(['Reeve', 'Reeve, not Node'], node.why || 'it waits', message)
  }
}

async function main() {
  const drawn = execFileSync(process.argv[2], ['--print'],
    { maxBuffer: 1 << 28, encoding: 'latin1' })
  let both = 0
  let neither = 0
  const lines = drawn.split('\n').filter((line) => line !== '')
  for (const line of lines) {
    const [message, why, over, ...taken] = line.split(' ')
    const ours = {
      why: text(why),
      over: over === '1',
      taken: taken.map((one) => {
        const [method, url, body, fields] = one.split(',')
        return { method: text(method), url: text(url), body: text(body), fields: Number(fields) }
      })
    }
    const node = await read(Buffer.from(message, 'hex'))
    compare(text(message), ours, node)
    both += ours.taken.length > 0 && node.taken.length > 0
    neither += ours.why !== '' && node.why !== ''
  }
  console.log('1..3')
  console.log(`${differs === 0 ? '' : 'not '}ok 1 - both take the same requests`)
  if (differs > 0) console.log(`# ${differs} of ${lines.length}, such as ${first}`)
  console.log(`${unexplained.size === 0 ? '' : 'not '}ok 2 - each difference is explained`)
  for (const [row, message] of unexplained) {
    console.log(`# docs/http-oracle.md has no row "${row}", of ${JSON.stringify(message)}`)
  }
  const shown = both > lines.length / 10 && neither > lines.length / 10
  console.log(`${shown ? '' : 'not '}ok 3 - the messages show both`)
  if (!shown) console.log(`# ${both} taken by both, ${neither} by none`)
}

main()
