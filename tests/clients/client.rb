# What Ruby's XMLRPC::Client sees of a daemon: one line of JSON.
#
# Arguments: the address of a sensor, and that of a server of large numbers.

require 'json'
require 'xmlrpc/client'

XMLRPC::Config.send(:remove_const, :ENABLE_NIL_PARSER)
XMLRPC::Config.const_set(:ENABLE_NIL_PARSER, true)
SENSOR = XMLRPC::Client.new2("#{ARGV[0]}/RPC2")
NUMBERS = XMLRPC::Client.new2("#{ARGV[1]}/RPC2")

def fault(*call)
  SENSOR.call(*call)
  nil
rescue XMLRPC::FaultException => e
  e.faultCode
end

answer = SENSOR.call('sensor.events', { 'limit' => 100 })
after = SENSOR.call('sensor.events', { 'cursor' => answer['cursor'] })
several = SENSOR.multicall(['daemon.info'], ['no.such'])
puts JSON.generate(
  events: answer['events'].map { |e| [e['kind'], e['user'], e['job'], format('%.6f', e['time'])] },
  missed: answer['missed'],
  after: after['events'].length,
  numbers: NUMBERS.call('trial.numbers').transform_values(&:to_s),
  unknown: fault('no.such'),
  bad: fault('sensor.events', { 'limit' => 'many' }),
  multicall: [several[0]['name'], several[1].faultCode],
  listed: SENSOR.call('system.listMethods').include?('sensor.events'),
  help: SENSOR.call('system.methodHelp', 'sensor.events').include?('limit'),
  signature: SENSOR.call('system.methodSignature', 'sensor.events')[0][0]
)
