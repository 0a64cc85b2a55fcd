# What Perl's RPC::XML::Client sees of a daemon: one line of JSON.
#
# Arguments: the address of a sensor, and that of a server of large numbers.

use strict;
use warnings;
use JSON::PP;
use RPC::XML;
use RPC::XML::Client;

$RPC::XML::ALLOW_NIL = 1;
$RPC::XML::ENCODING  = 'UTF-8';
my $sensor  = RPC::XML::Client->new("$ARGV[0]/RPC2");
my $numbers = RPC::XML::Client->new("$ARGV[1]/RPC2");

sub result {
    my ($client, @call) = @_;
    my $answer = $client->send_request(@call);
    die "@call: $answer" unless ref $answer;
    die "@call: " . $answer->string if $answer->is_fault;
    return $answer->value;
}

sub fault {
    my $answer = $sensor->send_request(@_);
    die "@_: $answer" unless ref $answer;
    return $answer->is_fault ? 0 + $answer->code : undef;
}

my $answer = result($sensor, 'sensor.events', { limit => 100 });
my $after  = result($sensor, 'sensor.events', { cursor => RPC::XML::string->new($answer->{cursor}) });
my $large  = result($numbers, 'trial.numbers');
my $several = result($sensor, 'system.multicall',
    [ { methodName => 'daemon.info', params => [] }, { methodName => 'no.such', params => [] } ]);
my $listed = result($sensor, 'system.listMethods');

# The client gives the bytes of UTF-8 as they came, and this prints them so.
binmode STDOUT, ':raw';
my $json = JSON::PP->new->canonical;
my $bytes = sub { my $text = shift; utf8::decode($text) unless utf8::is_utf8($text); return "$text" };
print $json->utf8->encode({
    events => [
        map { [ $_->{kind}, $bytes->($_->{user}), $bytes->($_->{job}), sprintf('%.6f', $_->{time}) ] }
            @{ $answer->{events} }
    ],
    missed    => 0 + $answer->{missed},
    after     => scalar @{ $after->{events} },
    numbers   => { map { $_ => "$large->{$_}" } keys %$large },
    unknown   => fault('no.such'),
    bad       => fault('sensor.events', { limit => 'many' }),
    multicall => [ $several->[0][0]{name}, 0 + $several->[1]{faultCode} ],
    listed    => (grep { $_ eq 'sensor.events' } @$listed) ? JSON::PP::true : JSON::PP::false,
    help      => result($sensor, 'system.methodHelp', 'sensor.events') =~ /limit/ ? JSON::PP::true : JSON::PP::false,
    signature => result($sensor, 'system.methodSignature', 'sensor.events')->[0][0],
}), "\n";
