// What Node's package xmlrpc sees of a daemon: one line of JSON.
//
// Arguments: the address of a sensor, and that of a server of large numbers. The package is found by NODE_PATH.
// A number of JavaScript is exact up to 2^53, so large ones are asked for as text.
'use strict';

const xmlrpc = require('xmlrpc');

const clients = process.argv.slice(2).map((address) => xmlrpc.createClient(`${address}/RPC2`));

function call(client, method, ...params) {
  return new Promise((resolve, reject) => {
    client.methodCall(method, params, (error, value) => (error ? reject(error) : resolve(value)));
  });
}

function fault(client, method, ...params) {
  return call(client, method, ...params).then(
    () => null,
    (error) => error.faultCode,
  );
}

async function main() {
  const [sensor, numbers] = clients;
  const answer = await call(sensor, 'sensor.events', { limit: 100 });
  const after = await call(sensor, 'sensor.events', { cursor: answer.cursor });
  const large = await call(numbers, 'trial.numbers', { big_integers: 'string' });
  const several = await call(sensor, 'system.multicall', [
    { methodName: 'daemon.info', params: [] },
    { methodName: 'no.such', params: [] },
  ]);
  const listed = await call(sensor, 'system.listMethods');
  const help = await call(sensor, 'system.methodHelp', 'sensor.events');
  const signature = await call(sensor, 'system.methodSignature', 'sensor.events');
  const seen = {
    events: answer.events.map((e) => [e.kind, e.user, e.job, e.time.toFixed(6)]),
    missed: answer.missed,
    after: after.events.length,
    numbers: Object.fromEntries(Object.entries(large).map(([name, value]) => [name, String(value)])),
    unknown: await fault(sensor, 'no.such'),
    bad: await fault(sensor, 'sensor.events', { limit: 'many' }),
    multicall: [several[0][0].name, several[1].faultCode],
    listed: listed.includes('sensor.events'),
    help: help.includes('limit'),
    signature: signature[0][0],
  };
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
